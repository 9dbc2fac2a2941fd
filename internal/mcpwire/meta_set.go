package mcpwire

import "github.com/dowel-mcp/dowel/internal/rawjson"

// SetMeta returns a copy of params or of a result in which a member of _meta has the given raw
// value; nil removes it. What is not an object counts as an empty one.
func SetMeta(object []byte, name string, value []byte) []byte {
	meta := orEmptyObject(rawjson.Lookup(object, "_meta"))
	return rawjson.Set(orEmptyObject(object), "_meta", rawjson.Set(meta, name, value))
}

func orEmptyObject(raw []byte) []byte {
	if !rawjson.IsObject(raw) {
		return []byte("{}")
	}
	return raw
}
