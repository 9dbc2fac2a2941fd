package mcp

import "time"

// Cache says how long a result stays fresh and who may share it (server/utilities/caching). The zero Cache is stale at
// once and private.
type Cache struct {
	TTL   time.Duration // sent in milliseconds; negative counts as zero
	Scope CacheScope    // empty is private
}

// CacheScope says who may reuse a result.
type CacheScope string

const (
	CachePublic  CacheScope = "public"
	CachePrivate CacheScope = "private"
)

// Cacheable reports whether the method's complete results carry caching hints.
func Cacheable(method string) bool {
	switch method {
	case MethodDiscover, MethodListTools, MethodListPrompts, MethodListResources, MethodListResourceTemplates,
		MethodReadResource:
		return true
	}
	return false
}

// Narrowest returns the shorter lifetime and the narrower scope of two hints, for a result made of both.
func (c Cache) Narrowest(other Cache) Cache {
	c.TTL = min(c.TTL, other.TTL)
	if other.Scope != CachePublic {
		c.Scope = CachePrivate
	}
	return c
}
