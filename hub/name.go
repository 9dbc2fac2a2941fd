package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxName is what providers of models take as a tool's name.
const maxName = 64

// separator stands between the server's name and the tool's on the wire.
const separator = "__"

// reserved is a server's name under which the hub's own user has things of its own, such as a gateway's tool.
const reserved = "dowel"

// wireName returns the name on the wire of a thing of a server. It depends on the two names alone. Where one of them is
// changed or cut or reserved, or they could be split in another way, a digest of both makes it unique.
func wireName(server, thing string) string {
	s, t := plain(server), plain(thing)
	name := s + separator + t
	if s == server && t == thing && s != reserved && len(name) <= maxName && !strings.Contains(s, separator) && !strings.HasSuffix(s, "_") {
		return name
	}
	mark := digest(server + "\x00" + thing)
	return name[:min(len(name), maxName-len(mark))] + mark
}

// wireServer returns the name of a server in URIs.
func wireServer(name string) string {
	if p := plain(name); p == name {
		return p
	}
	return plain(name) + digest(name)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "_" + hex.EncodeToString(sum[:4])
}

// plain replaces what names on the wire cannot hold.
func plain(name string) string {
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

// folded is a name without the differences that models lose: the case, and which of -, _ and . stands between words.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '-', '.', '/', ' ', ':':
			return '_'
		}
		return r
	}, strings.ToLower(name))
}
