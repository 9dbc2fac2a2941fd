package definitions

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// The kinds of definitions. They are part of stored records.
const (
	Tool         = "tool"
	Prompt       = "prompt"
	Template     = "resource template"
	Instructions = "instructions"
)

// Definition is one definition as a server gave it.
type Definition struct {
	kind, name string
	text       json.RawMessage
	digest     string
}

// New returns the definition of a kind, with the server's own name for it. Instructions have no
// name. text is valid JSON: the object in the server's list, or the instructions as a string.
func New(kind, name string, text json.RawMessage) Definition {
	sum := sha256.Sum256(rawjson.AppendCanonical(nil, withoutMeta(text)))
	return Definition{kind, name, text, base64.RawURLEncoding.EncodeToString(sum[:])}
}

// Change is a definition that the user has not accepted: it differs from the accepted one.
type Change struct {
	// Kind is tool, prompt, resource template or instructions.
	Kind string `json:"kind"`
	// Name is the server's own name. Instructions have none.
	Name string `json:"name,omitzero"`
	// Digest identifies the new definition.
	Digest string `json:"digest"`
	// Time is when the new definition was first seen.
	Time time.Time `json:"time"`
	// Lines are the differences, such as "~ annotations.destructiveHint: false → true". A long
	// difference is cut.
	Lines []string `json:"lines,omitempty"`
}

// Equal reports whether two texts are the same definition.
func Equal(a, b json.RawMessage) bool { return New("", "", a).digest == New("", "", b).digest }

// withoutMeta returns an object without the member _meta, and other values as they are.
func withoutMeta(text json.RawMessage) json.RawMessage {
	if !rawjson.IsObject(text) {
		return text
	}
	members, found := []byte(nil), false
	members, _ = rawjson.AppendMembers([]byte{'{'}, text, func(key []byte) bool {
		isMeta := string(key) == "_meta"
		found = found || isMeta
		return isMeta
	})
	if !found {
		return text
	}
	return append(members, '}')
}

// compactText returns the text without white space and _meta.
func (d Definition) compactText() json.RawMessage {
	var out bytes.Buffer
	if json.Compact(&out, withoutMeta(d.text)) != nil {
		return nil // cannot happen: the text is valid
	}
	return out.Bytes()
}

// maxKeyName limits the length of a name in a key.
const maxKeyName = 256

// key identifies a definition in a record. A long name is replaced by its hash.
func (d Definition) key() string { return keyOf(d.kind, d.name) }

func keyOf(kind, name string) string {
	if len(name) > maxKeyName {
		sum := sha256.Sum256([]byte(name))
		name = "sha256:" + base64.RawURLEncoding.EncodeToString(sum[:])
	}
	return kind + " " + name
}
