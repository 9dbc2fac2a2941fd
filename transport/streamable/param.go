package streamable

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
)

// paramBook holds which arguments of tools are mirrored into header fields, as the server's lists tell. The zero paramBook
// is ready; it is safe for concurrent use.
type paramBook struct {
	mu    sync.RWMutex
	tools map[string][]schema.Header
}

// maxParamBook bounds the tools that are remembered.
const maxParamBook = 4096

// rejectedTool is a tool whose x-mcp-header annotations break the rules: it must not be used over HTTP.
type rejectedTool struct {
	name   string
	reason error
}

// learn remembers what the result of tools/list says, and returns it without the tools that must not be used.
func (b *paramBook) learn(result json.RawMessage) (clean json.RawMessage, rejected []rejectedTool) {
	if !b.known() && !bytes.Contains(result, []byte("x-mcp-header")) {
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

func (b *paramBook) known() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.tools) > 0
}

func (b *paramBook) learnTool(name string, input json.RawMessage) error {
	var headers []schema.Header
	var err error
	if bytes.Contains(input, []byte("x-mcp-header")) {
		headers, err = schema.Headers(input)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch _, there := b.tools[name]; {
	case len(headers) == 0:
		delete(b.tools, name)
	case b.tools == nil:
		b.tools = map[string][]schema.Header{name: headers}
	default:
		if !there && len(b.tools) >= maxParamBook {
			b.forgetOne()
		}
		b.tools[name] = headers
	}
	return err
}

// forgetOne makes room for a tool, so that the names of the past do not keep out those of today; b.mu is held.
func (b *paramBook) forgetOne() {
	for name := range b.tools {
		delete(b.tools, name)
		return
	}
}

// fields adds the header fields that mirror the arguments of a tools/call.
func (b *paramBook) fields(h http.Header, params json.RawMessage) {
	if !b.known() {
		return
	}
	name, _ := rawjson.String(rawjson.Lookup(params, "name"))
	b.mu.RLock()
	headers := b.tools[name]
	b.mu.RUnlock()
	arguments := rawjson.Lookup(params, "arguments")
	for _, header := range headers {
		if value, ok := mirrored(header, arguments); ok {
			h.Set(mcp.HeaderParamPrefix+header.Name, mcp.EncodeHeaderValue(value))
		}
	}
}

// mirrored returns the value of a field; false where the arguments have none, or one that is mirrored as nothing. It goes by
// the type of the value and not by the declared one: what does not fit is the tool's to refuse, in words that a model can
// read, and not a mismatch of the fields.
func mirrored(header schema.Header, arguments []byte) (string, bool) {
	raw := arguments
	for _, name := range header.Path {
		if raw = rawjson.Lookup(raw, name); raw == nil {
			return "", false
		}
	}
	switch raw = bytes.TrimSpace(raw); raw[0] {
	case '"':
		return rawjson.String(raw)
	case 't', 'f':
		return string(raw), true
	case '{', '[', 'n':
		return "", false
	}
	return integer(raw)
}

// integer returns the decimal form of a number that is an integer, however it is written; false for another one, and for one
// beyond ±(2⁵³−1), which must not be mirrored (basic/transports/streamable-http: schema extension). Nothing is rounded:
// 9007199254740990.5 is no integer.
func integer(raw []byte) (string, bool) {
	const most = 1<<53 - 1
	if f, err := strconv.ParseFloat(string(raw), 64); err != nil || math.Abs(f) > most {
		return "", false
	}
	mantissa, exponent := string(raw), int64(0)
	if e := strings.IndexAny(mantissa, "eE"); e >= 0 {
		exponent, _ = strconv.ParseInt(mantissa[e+1:], 10, 32) // the nearest where it is out of range
		mantissa = mantissa[:e]
	}
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	significant := strings.TrimRight(digits, "0")
	zeros := exponent + int64(len(digits)-len(significant)-len(fraction))
	switch {
	case significant == "":
		return "0", true
	case zeros < 0:
		return "", false
	}
	decimal := significant + strings.Repeat("0", int(zeros)) // few: the value is in range
	if raw[0] == '-' {
		decimal = "-" + decimal
	}
	return decimal, true
}
