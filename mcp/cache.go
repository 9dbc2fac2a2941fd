package mcp

import "time"

// Cache says how long a result stays fresh and who may share it (server/utilities/caching). The
// zero Cache is private and stale at once.
type Cache struct {
	TTL   time.Duration // sent in milliseconds; a negative value counts as zero
	Scope CacheScope    // empty means private
}

// CacheScope says whether caches may share a result between users.
type CacheScope string

const (
	CachePublic  CacheScope = "public"
	CachePrivate CacheScope = "private"
)
