// Package wirename makes the names under which a hub has the tools and prompts of its servers, and reads them.
package wirename

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxName is what providers of models take as a tool's name.
const maxName = 64

// Separator stands between the server's name and the tool's.
const Separator = "__"

// reserved is a server's name under which the hub's own user has things of its own, such as a gateway's tool.
const reserved = "dowel"

// The keys of a definition's _meta under which stand the server that has the thing, and what it calls it: where the name alone does
// not say so, see [Marked].
const (
	MetaServer = "dowel/server"
	MetaThing  = "dowel/name"
)

// Of returns the name of a thing of a server. It depends on the two names alone. Where one of them is changed or cut or reserved,
// or they could be split in another way, a digest of both makes it unique.
func Of(server, thing string) string {
	s, t := Plain(server), Plain(thing)
	name := s + Separator + t
	if s == server && t == thing && s != reserved && len(name) <= maxName && !strings.Contains(s, Separator) && !strings.HasSuffix(s, "_") && !Marked(t) {
		return name
	}
	mark := Digest(server + "\x00" + thing)
	return name[:min(len(name), maxName-len(mark))] + mark
}

// markLength is that of a digest in a name.
const markLength = 1 + 2*4

// Marked reports whether a name ends with a digest. One that does not says itself what it is of.
func Marked(name string) bool {
	if len(name) < markLength || name[len(name)-markLength] != '_' {
		return false
	}
	return strings.Trim(name[len(name)-markLength+1:], "0123456789abcdef") == ""
}

// Split returns the server and the thing that a name is of; false where it does not say so itself, and neither do the values of
// [MetaServer] and [MetaThing] of its definition, or they are not of that name.
func Split(name string, server, thing any) (string, string, bool) {
	s, given := server.(string)
	t, both := thing.(string)
	if given && both {
		return s, t, Of(s, t) == name
	}
	s, t, qualified := strings.Cut(name, Separator)
	return s, t, qualified && Of(s, t) == name
}

// Digest tells apart what [Plain] makes the same.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "_" + hex.EncodeToString(sum[:4])
}

// Plain replaces what names on the wire cannot hold.
func Plain(name string) string {
	if name == "" {
		return "_"
	}
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z') {
			return r
		}
		return '_'
	}, name)
}
