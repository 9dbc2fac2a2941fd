// Package kv is an MCP server that stores pairs of keys and values. A model can use it as a memory,
// or several models can share it.
//
// It has the tools get, set, delete and list. Each pair is a resource kv://{key}; clients that
// subscribe to it are notified of changes. A [Store] holds the pairs: [Bolt] in a file, [Redis] in
// a Redis that several processes share, [Memory] in this process.
//
// # Limits
//
// A key is text of 1 to [MaxKey] bytes, with any characters but NUL; in a URI it is
// percent-encoded. A value is text of at most [MaxValue] bytes, without NUL; encode binary data,
// for example as base64. A page of list holds [MaxList] keys. Only the store limits the number of
// pairs.
package kv

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/server"
)

// Limits of keys and values, in bytes, and of the keys in one page of the tool list.
const (
	MaxKey   = 512
	MaxValue = 1 << 20
	MaxList  = 1000
)

// Version is the version that the server reports.
const Version = "1.0.0"

// Server is a [server.Server] that owns a store. Call Close to release it.
type Server struct {
	*server.Server
	store Store
}

// New returns a server of the pairs in store. It takes ownership of the store: Close closes it, and
// New closes it if it fails. The options are the options of [server.New]; Instructions have a
// default.
func New(store Store, opts ...server.Options) (*Server, error) {
	var o server.Options
	if len(opts) > 0 {
		o = opts[0]
	}
	if o.Instructions == "" {
		o.Instructions = "Keeps pairs of keys and values across conversations. Use list to see the existing keys; do not guess them."
	}
	s := &Server{Server: server.New("kv", Version, &o), store: store}
	s.addTools()
	s.addResources()
	if err := store.Watch(s.announceChange); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return s, nil
}

// Close ends all subscriptions and closes the store. The server must not be used during or after
// it.
func (s *Server) Close() error {
	return errors.Join(s.Server.Close(), s.store.Close())
}

// announceChange notifies clients of a change.
func (s *Server) announceChange(c Change) {
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
		return errors.New("the key is empty: want at least one character")
	case len(key) > MaxKey:
		return fmt.Errorf("the key has %d bytes: want at most %d", len(key), MaxKey)
	}
	return checkText("key", key)
}

func checkValue(value string) error {
	if len(value) > MaxValue {
		return fmt.Errorf("the value has %d bytes: want at most %d; store it in parts, under several keys", len(value), MaxValue)
	}
	return checkText("value", value)
}

func checkText(what, s string) error {
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return fmt.Errorf("the %s is not text: encode binary data, for example as base64", what)
	}
	return nil
}
