// Package kv is an MCP server that keeps pairs of keys and values: for a model that wants to remember, for several that want
// to share.
//
// It has the tools get, set, delete and list, and each pair is a resource kv://{key}, whose readers are told when it changes.
// Where the pairs are is up to a [Store]: [Bolt], a file; [Redis], which several processes share and through which they tell each
// other of changes; [Memory].
//
// # Limits
//
// A key is text of 1 to [MaxKey] bytes, with any characters but NUL; in a URI it is percent-encoded. A value is text of at most
// [MaxValue] bytes, without NUL: binary data has to be encoded, as base64 for instance. A page of list holds [MaxList] keys.
// The number of pairs has no limit but that of the store.
package kv

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/server"
)

// Limits of what is stored, in bytes, and of the keys in one page of the tool list.
const (
	MaxKey   = 512
	MaxValue = 1 << 20
	MaxList  = 1000
)

// Version is that of the server.
const Version = "1.0.0"

// Server is a [server.Server] with a store behind it.
type Server struct {
	*server.Server
	store Store
}

// New returns a server of what the store holds. The store becomes the server's: Close closes it, and so does an error.
// The options are those of [server.New]; Instructions have a default of their own.
func New(store Store, opts ...server.Options) (*Server, error) {
	var o server.Options
	if len(opts) > 0 {
		o = opts[0]
	}
	if o.Instructions == "" {
		o.Instructions = "Keeps pairs of keys and values across conversations. Use list to see which keys there are before guessing one."
	}
	s := &Server{Server: server.New("kv", Version, &o), store: store}
	s.addTools()
	s.addResources()
	if err := store.Watch(s.announce); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return s, nil
}

// Close ends all subscriptions and closes the store. Nothing may be called during or after it.
func (s *Server) Close() error {
	return errors.Join(s.Server.Close(), s.store.Close())
}

// announce tells clients of a change.
func (s *Server) announce(c Change) {
	if c.Kind != Missed {
		s.Updated(URI(c.Key))
	}
	if c.Kind != Replaced {
		s.ListChanged(server.KindResource)
	}
}

func checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("the key is empty: a key has at least one character")
	case len(key) > MaxKey:
		return fmt.Errorf("the key has %d bytes: at most %d are allowed", len(key), MaxKey)
	}
	return checkText("key", key)
}

func checkValue(value string) error {
	if len(value) > MaxValue {
		return fmt.Errorf("the value has %d bytes: at most %d are allowed; store it in parts, under several keys", len(value), MaxValue)
	}
	return checkText("value", value)
}

func checkText(what, s string) error {
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return fmt.Errorf("the %s is not text: encode binary data, as base64 for instance", what)
	}
	return nil
}
