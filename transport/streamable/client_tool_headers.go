package streamable

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/toolheader"
)

// toolHeaders knows which arguments of the server's tools are mirrored into header fields. It
// learns them from the lists of tools. The zero value is ready to use, and it is safe for
// concurrent use.
type toolHeaders struct {
	mu    sync.RWMutex
	tools map[string][]toolheader.Header
}

// maxHeaderTools bounds the tools that are remembered.
const maxHeaderTools = 4096

// rejectedTool is a tool with invalid x-mcp-header annotations. It must not be used over HTTP.
type rejectedTool struct {
	name   string
	reason error
}

// learnTools learns from the result of tools/list and returns it without the rejected tools.
func (b *toolHeaders) learnTools(result json.RawMessage) (clean json.RawMessage, rejected []rejectedTool) {
	if !b.isUsed() && !bytes.Contains(result, []byte("x-mcp-header")) {
		return result, nil
	}
	list := rawjson.Lookup(result, "tools")
	kept := []byte{'['}
	for it := rawjson.Array(list); it.Next(); {
		name, _ := rawjson.String(rawjson.Lookup(it.Value, "name"))
		if err := b.learnTool(name, rawjson.Lookup(it.Value, "inputSchema")); err != nil {
			rejected = append(rejected, rejectedTool{name, err})
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, it.Value...)
	}
	if rejected == nil {
		return result, nil
	}
	return rawjson.Set(result, "tools", append(kept, ']')), rejected
}

func (b *toolHeaders) isUsed() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.tools) > 0
}

func (b *toolHeaders) learnTool(name string, input json.RawMessage) error {
	var headers []toolheader.Header
	var err error
	if bytes.Contains(input, []byte("x-mcp-header")) {
		headers, err = toolheader.List(input)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch _, isKnown := b.tools[name]; {
	case len(headers) == 0:
		delete(b.tools, name)
	case b.tools == nil:
		b.tools = map[string][]toolheader.Header{name: headers}
	default:
		if !isKnown && len(b.tools) >= maxHeaderTools {
			b.evictOne()
		}
		b.tools[name] = headers
	}
	return err
}

// evictOne forgets any one tool, to make room for another. b.mu is held.
func (b *toolHeaders) evictOne() {
	for name := range b.tools {
		delete(b.tools, name)
		return
	}
}

// forwardParamFields adds the fields Mcp-Param-… of another client's request (basic/transports/
// streamable-http: server behavior for custom headers).
func forwardParamFields(h http.Header, from map[string][]string) {
	for name, values := range from {
		if strings.HasPrefix(name, mcpwire.HeaderParamPrefix) {
			h[name] = values
		}
	}
}

// addFields adds the header fields that mirror the arguments of a tools/call.
func (b *toolHeaders) addFields(h http.Header, params json.RawMessage) {
	if !b.isUsed() {
		return
	}
	name, _ := rawjson.String(rawjson.Lookup(params, "name"))
	b.mu.RLock()
	headers := b.tools[name]
	b.mu.RUnlock()
	arguments := rawjson.Lookup(params, "arguments")
	for _, header := range headers {
		if value, ok := mirroredValue(header, arguments); ok {
			h.Set(mcpwire.HeaderParamPrefix+header.Name, mcpwire.EncodeHeaderValue(value))
		}
	}
}

// mirroredValue returns the value of a header field. ok is false if the argument is missing or
// cannot be mirrored.
func mirroredValue(header toolheader.Header, arguments []byte) (string, bool) {
	raw := header.Lookup(arguments)
	if raw == nil {
		return "", false
	}
	return mcpwire.HeaderArgument(raw)
}
