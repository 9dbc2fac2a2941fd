package kv

import (
	"context"
	"iter"
	"net/url"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// Template is the URI template of the resources.
const Template = "kv://{key}"

const scheme = "kv://"

// mimeType is the type of all values. The server does not know a more precise one.
const mimeType = "text/plain"

// URI returns the URI of a key's resource, under which it is listed and its changes are announced.
func URI(key string) string {
	// Form encoding encodes the same characters as a URI template, but a space as +.
	return scheme + strings.ReplaceAll(url.QueryEscape(key), "+", "%20")
}

// keyOf is the reverse of URI.
func keyOf(uri string) (string, error) {
	return url.PathUnescape(strings.TrimPrefix(uri, scheme))
}

func (s *Server) addResources() {
	server.Resource(s.Server, Template, "The value stored under a key.", s.readValue, server.ResourceOptions{
		Name: "pair", Title: "Stored value", MIMEType: mimeType,
		Complete: map[string]server.CompleteFunc{"key": s.completeKey},
	})
	s.Provide(s.listResources)
}

func (s *Server) readValue(ctx context.Context, in struct {
	Key string `uri:"key"`
}) (string, error) {
	if checkKey(in.Key) != nil {
		return "", mcp.ResourceNotFound(server.URI(ctx)) // an invalid key cannot exist
	}
	value, err := s.store.Get(ctx, in.Key)
	if err != nil {
		return "", err
	}
	return value, checkStored(in.Key, value)
}

// completeKey suggests keys that begin with the typed text.
func (s *Server) completeKey(ctx context.Context, typed string, _ map[string]string) ([]string, error) {
	return s.store.Keys(ctx, typed, "", MaxList)
}

// batch is the number of keys that listResources fetches at once.
const batch = 200

// listResources yields the keys as resources, sorted by the bytes of the keys.
func (s *Server) listResources(ctx context.Context, after string) iter.Seq2[mcp.Resource, error] {
	return func(yield func(mcp.Resource, error) bool) {
		last, err := keyOf(after)
		for err == nil {
			var keys []string
			if keys, err = s.store.Keys(ctx, "", last, batch); len(keys) == 0 {
				break
			}
			for _, key := range keys {
				if !yield(mcp.Resource{URI: URI(key), Name: key, MIMEType: mimeType}, nil) {
					return
				}
			}
			last = keys[len(keys)-1]
		}
		if err != nil {
			yield(mcp.Resource{}, err)
		}
	}
}
