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

// Cacheable reports whether the method's complete results carry caching hints.
func Cacheable(method string) bool {
	switch method {
	case MethodDiscover, MethodListTools, MethodListPrompts, MethodListResources, MethodListResourceTemplates,
		MethodReadResource:
		return true
	}
	return false
}

// Narrowest returns the shorter lifetime and the narrower scope of two hints. Use it for a result
// that combines two others.
func (c Cache) Narrowest(other Cache) Cache {
	c.TTL = min(c.TTL, other.TTL)
	if other.Scope != CachePublic {
		c.Scope = CachePrivate
	}
	return c
}
