package wiretest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"unicode/utf8"
)

type kind int

const (
	request kind = iota
	notification
	result
	failure
)

// message is one decoded JSON-RPC object.
type message struct {
	kind   kind
	value  map[string]any
	id     string // the result of idKey
	method string
	params map[string]any
	result map[string]any
}

// decodeFrame reads one JSON value and keeps the text of its numbers. It refuses data after the
// value and, unlike encoding/json, duplicate names.
func decodeFrame(frame []byte) (any, error) {
	if !utf8.Valid(frame) {
		return nil, errors.New("frame is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(frame))
	d.UseNumber()
	value, err := decodeValue(d, maxDepth)
	if err != nil {
		return nil, fmt.Errorf("frame is not JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("frame continues after its JSON value")
	}
	return value, nil
}

// maxDepth bounds the recursion over nested objects and arrays.
const maxDepth = 1000

func decodeValue(d *json.Decoder, depth int) (any, error) {
	if depth == 0 {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return decodeObject(d, depth)
	case json.Delim('['):
		items := []any{}
		for d.More() {
			item, err := decodeValue(d, depth-1)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		_, err := d.Token()
		return items, err
	}
	if n, ok := token.(json.Number); ok {
		return n, checkNumberSize(n)
	}
	return token, nil
}

// checkNumberSize refuses numbers that take long to compute exactly, here or in the schema library.
// No number of the protocol is that large.
func checkNumberSize(n json.Number) error {
	_, exponent, _ := strings.Cut(strings.ToLower(n.String()), "e")
	if len(n) > 1000 || len(strings.TrimLeft(exponent, "+-0")) > 3 {
		return fmt.Errorf("number %.20s… is beyond reason", n)
	}
	return nil
}

func decodeObject(d *json.Decoder, depth int) (any, error) {
	members := map[string]any{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("%v where a member's name belongs", token)
		}
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("member %q is there twice", name)
		}
		if members[name], err = decodeValue(d, depth-1); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return members, err
}

// parseMessage sorts a decoded value into one of the four kinds.
func parseMessage(value any) (*message, error) {
	members, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("message is not an object")
	}
	m := &message{value: members, params: object(members, "params"), result: object(members, "result")}
	m.id = idKey(members["id"])
	_, hasID := members["id"]
	_, hasResult := members["result"]
	_, hasError := members["error"]
	method, hasMethod := members["method"]
	switch {
	case hasMethod && (hasResult || hasError), hasResult && hasError:
		return nil, errors.New("message has more than one of method, result and error")
	case hasMethod:
		if m.method, ok = method.(string); !ok {
			return nil, errors.New("method is not a string")
		}
		if !hasID {
			m.kind = notification
		}
	case hasResult:
		m.kind = result
	case hasError:
		m.kind = failure
	default:
		return nil, errors.New("message has none of method, result and error")
	}
	return m, nil
}

// idKey makes ids and progress tokens comparable: "1" and 1 differ, 1 and 1.0 are the same. It
// returns "" for a value that is neither a string nor a number.
func idKey(id any) string {
	switch id := id.(type) {
	case string:
		return "s" + id
	case json.Number:
		return "n" + parseNumber(id).Text('g', -1)
	}
	return ""
}

// parseNumber parses a number with more precision than a float64. It cannot fail for numbers that
// decode accepts.
func parseNumber(n json.Number) *big.Float {
	f, _, err := big.ParseFloat(n.String(), 10, 256, big.ToNearestEven)
	if err != nil {
		panic(err)
	}
	return f
}
