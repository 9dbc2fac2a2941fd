package kv

import "github.com/gomodule/redigo/redis"

// The scripts run atomically in Redis. Their KEYS are the name of the value, the sorted set of keys
// and the sorted set of expiries; their ARGV are in each comment.

const scriptKeyCount = 3

// setScript stores a value. ARGV: key, value, time to live in milliseconds (0 for none), channel.
// It returns 1 if the key is new.
var setScript = redis.NewScript(scriptKeyCount, now+`
local existed = redis.call('EXISTS', KEYS[1])
local ttl = tonumber(ARGV[3])
redis.call('SET', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
if ttl > 0 then
  redis.call('PEXPIREAT', KEYS[1], now() + ttl)
  redis.call('ZADD', KEYS[3], now() + ttl, ARGV[1])
else
  redis.call('ZREM', KEYS[3], ARGV[1])
end
redis.call('PUBLISH', ARGV[4], (existed == 1 and '=' or '+') .. ARGV[1])
return 1 - existed
`)

// deleteScript removes a key. ARGV: key, channel. It returns 1 if the key existed.
var deleteScript = redis.NewScript(scriptKeyCount, `
local existed = redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[3], ARGV[1])
if redis.call('ZREM', KEYS[2], ARGV[1]) == 1 then
  redis.call('PUBLISH', ARGV[2], '-' .. ARGV[1])
end
return existed
`)

// keysScript lists keys that have not expired. ARGV: from, to (in the syntax of ZRANGEBYLEX),
// limit.
var keysScript = redis.NewScript(scriptKeyCount, now+`
local keys, from, limit = {}, ARGV[1], tonumber(ARGV[3])
repeat
  local page = redis.call('ZRANGEBYLEX', KEYS[2], from, ARGV[2], 'LIMIT', 0, limit)
  for _, key in ipairs(page) do
    local expires = redis.call('ZSCORE', KEYS[3], key)
    if #keys < limit and not (expires and tonumber(expires) <= now()) then
      keys[#keys + 1] = key
    end
    from = '(' .. key
  end
until #keys == limit or #page < limit
return keys
`)

// sweepScript removes expired keys. ARGV: channel, prefix of the names of values, limit. It returns
// the number of milliseconds until the next key expires: 0 if more keys have expired already, -1 if
// no key will expire.
var sweepScript = redis.NewScript(scriptKeyCount, now+`
local due = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now(), 'LIMIT', 0, ARGV[3])
for _, key in ipairs(due) do
  redis.call('DEL', ARGV[2] .. key)
  redis.call('ZREM', KEYS[2], key)
  redis.call('ZREM', KEYS[3], key)
  redis.call('PUBLISH', ARGV[1], '-' .. key)
end
local next = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
if #next == 0 then return -1 end
return math.max(tonumber(next[2]) - now(), 0)
`)

// now defines a Lua function that returns the time in milliseconds, by the clock of Redis.
const now = `
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
`
