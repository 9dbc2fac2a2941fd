// Package wirename makes and parses the names under which a hub offers the tools and prompts of its
// servers. A name has the form SERVER__TOOL in the characters that model providers accept. Names
// that would be too long, ambiguous or invalid end with a digest that makes them unique.
//
//	name := wirename.Of("github", "create_issue") // github__create_issue
//	server, tool, ok := wirename.Split(name, nil, nil)
package wirename

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxName is the maximal length of a tool name at model providers.
const maxName = 64

// Separator separates the server's name from the tool's.
const Separator = "__"

// reserved is a server name that the hub's user needs for its own tools, such as the tools of a
// gateway.
const reserved = "dowel"

// Keys of a definition's _meta. They hold the server and the server's own name of the tool or
// prompt, if the name alone does not tell them; see [Marked]. The definition of a resource or
// template always has the server.
const (
	MetaServer = "dowel/server"
	MetaThing  = "dowel/name"
)

// Of returns the name of a server's tool, prompt or other thing. It depends only on the two names.
// If one of them had to be changed or shortened, is reserved, or would make the name ambiguous, a
// digest of both makes it unique.
func Of(server, thing string) string {
	s, t := Plain(server), Plain(thing)
	name := s + Separator + t
	if fits(server) && t == thing && len(name) <= maxName && !Marked(t) {
		return name
	}
	mark := Digest(server + "\x00" + thing)
	return name[:min(len(name), maxName-len(mark))] + mark
}

// fits reports whether names on the wire contain a server's name unchanged and can be split after
// it.
func fits(server string) bool {
	return Plain(server) == server && server != reserved && !strings.Contains(server, Separator) && !strings.HasSuffix(server, "_")
}

// Fit returns a name for a new server from the words of a person: name itself if names on the wire
// contain it unchanged, else a similar name, such as my-server for "My Server".
func Fit(name string) string {
	if fits(name) {
		return name
	}
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return r != '-' && (r == '_' || Plain(string(r)) != string(r))
	})
	fitted := strings.Trim(strings.Join(words, "-"), "-")
	if fitted == "" || fitted == reserved {
		return strings.TrimPrefix(fitted+"-server", "-")
	}
	return fitted
}

// markLength is the length of a digest in a name.
const markLength = 1 + 2*4

// Marked reports whether a name ends with a digest. [Split] can parse a name without a digest
// without further information.
func Marked(name string) bool {
	if len(name) < markLength || name[len(name)-markLength] != '_' {
		return false
	}
	return strings.Trim(name[len(name)-markLength+1:], "0123456789abcdef") == ""
}

// Split returns the server and the thing of a name. server and thing are the values of [MetaServer]
// and [MetaThing] of its definition; they may be nil. ok is false if neither they nor the name
// itself tell the parts, or if they do not match the name.
func Split(name string, server, thing any) (string, string, bool) {
	s, given := server.(string)
	t, both := thing.(string)
	if given && both {
		return s, t, Of(s, t) == name
	}
	s, t, qualified := strings.Cut(name, Separator)
	return s, t, qualified && Of(s, t) == name
}

// Digest returns a short digest of text, with a leading underscore. It distinguishes texts for
// which [Plain] returns the same.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "_" + hex.EncodeToString(sum[:4])
}

// Plain replaces characters that names on the wire cannot have.
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

// resourceScheme begins the URIs of resources that name their server.
const resourceScheme = "dowel://"

// ResourceURI returns the URI under which a hub reads a server's resource even if other servers
// have a resource with the same URI.
func ResourceURI(server, uri string) string { return resourceScheme + Host(server) + "/" + uri }

// SplitResourceURI returns the parts of a result of [ResourceURI]. host is the server's name in the
// form of [Host].
func SplitResourceURI(text string) (host, uri string, ok bool) {
	rest, ok := strings.CutPrefix(text, resourceScheme)
	if !ok {
		return "", text, false
	}
	host, uri, ok = strings.Cut(rest, "/")
	return host, uri, ok && host != ""
}

// Host returns the form of a server's name in the URIs of its resources.
func Host(server string) string {
	if p := Plain(server); p == server {
		return p
	}
	return Plain(server) + Digest(server)
}
