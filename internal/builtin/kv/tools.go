package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

var (
	reads  = &mcp.ToolAnnotations{ReadOnlyHint: new(true), OpenWorldHint: new(false)}
	writes = &mcp.ToolAnnotations{DestructiveHint: new(true), IdempotentHint: new(true), OpenWorldHint: new(false)}
)

func (s *Server) addTools() {
	server.Tool(s.Server, "get", "Returns the value stored under a key.", s.getValue,
		server.ToolOptions{Title: "Get a value", Annotations: reads})
	server.Tool(s.Server, "set", "Stores a value under a key and replaces an existing one. Values are text of at most 1 MiB.", s.setValue,
		server.ToolOptions{Title: "Store a value", Annotations: writes})
	server.Tool(s.Server, "delete", "Deletes a key and its value.", s.deleteKey,
		server.ToolOptions{Title: "Delete a key", Annotations: writes})
	server.Tool(s.Server, "list", "Lists the keys, sorted by their bytes, one page at a time.", s.listKeys,
		server.ToolOptions{Title: "List keys", Annotations: reads})
}

type keyIn struct {
	Key string `json:"key" doc:"The key: text of 1 to 512 bytes" minLength:"1" maxLength:"512"`
}

func (s *Server) getValue(ctx context.Context, in keyIn) (string, error) {
	if err := checkKey(in.Key); err != nil {
		return "", err
	}
	value, err := s.store.Get(ctx, in.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the key %q does not exist: use list to see the existing keys", in.Key)
	}
	if err != nil {
		return "", err
	}
	return value, checkStored(in.Key, value)
}

// checkStored checks a value from a shared store, because another program may have stored binary
// data.
func checkStored(key, value string) error {
	if err := checkText("value", value); err != nil {
		return fmt.Errorf("the value of %q cannot be shown: it is binary data, stored by another program", key)
	}
	return nil
}

type setIn struct {
	Key   string `json:"key" doc:"The key: text of 1 to 512 bytes" minLength:"1" maxLength:"512"`
	Value string `json:"value" doc:"The value: text of at most 1048576 bytes" maxLength:"1048576"`
	TTL   int    `json:"ttl,omitzero" doc:"Seconds after which the key expires; without it, the key never expires" minimum:"1" maximum:"315360000"`
}

func (s *Server) setValue(ctx context.Context, in setIn) (string, error) {
	if err := errors.Join(checkKey(in.Key), checkValue(in.Value)); err != nil {
		return "", err
	}
	ttl := time.Duration(in.TTL) * time.Second
	created, err := s.store.Set(ctx, in.Key, in.Value, ttl)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("replaced the value of %q", in.Key)
	if created {
		text = fmt.Sprintf("stored the new key %q", in.Key)
	}
	if ttl > 0 {
		text += fmt.Sprintf(", for %v", ttl)
	}
	return text, nil
}

func (s *Server) deleteKey(ctx context.Context, in keyIn) (string, error) {
	if err := checkKey(in.Key); err != nil {
		return "", err
	}
	existed, err := s.store.Delete(ctx, in.Key)
	switch {
	case err != nil:
		return "", err
	case !existed:
		return fmt.Sprintf("the key %q did not exist", in.Key), nil
	}
	return fmt.Sprintf("deleted %q", in.Key), nil
}

type listIn struct {
	Prefix string `json:"prefix,omitzero" doc:"Only keys that begin with this" maxLength:"512"`
	After  string `json:"after,omitzero" doc:"Only keys that come after this one: the last key of the previous page" maxLength:"512"`
	Limit  int    `json:"limit,omitzero" doc:"The maximal number of keys in a page" default:"100" minimum:"1" maximum:"1000"`
}

// Page is the result of the tool list.
type Page struct {
	Keys []string `json:"keys" doc:"The keys, sorted by their bytes"`
	More bool     `json:"more" doc:"Whether more keys follow; to get them, call list with the last key as after"`
}

func (s *Server) listKeys(ctx context.Context, in listIn) (Page, error) {
	keys, err := s.store.Keys(ctx, in.Prefix, in.After, in.Limit+1)
	if err != nil {
		return Page{}, err
	}
	if len(keys) > in.Limit {
		return Page{Keys: keys[:in.Limit], More: true}, nil
	}
	return Page{Keys: keys}, nil
}
