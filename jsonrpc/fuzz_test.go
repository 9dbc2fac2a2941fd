package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

// encode writes a parsed message again.
func encode(m Message) []byte {
	switch {
	case m.IsRequest():
		return AppendRequest(nil, m.ID, m.Method, m.Params)
	case m.IsNotification():
		return AppendNotification(nil, m.Method, m.Params)
	case m.Error != nil:
		return AppendError(nil, m.ID, m.Error)
	}
	return AppendResult(nil, m.ID, m.Result)
}

func same(a, b Message) bool {
	if a.ID != b.ID || a.Method != b.Method || !bytes.Equal(a.Params, b.Params) || !bytes.Equal(a.Result, b.Result) || (a.Error == nil) != (b.Error == nil) {
		return false
	}
	return a.Error == nil || a.Error.Code == b.Error.Code && a.Error.Message == b.Error.Message && bytes.Equal(a.Error.Data, b.Error.Data)
}

func FuzzParse(f *testing.F) {
	for _, frame := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":"a","method":"x","params":{"b":[1]}}`, `{"jsonrpc":"2.0","method":"m"}`,
		`{"jsonrpc":"2.0","id":1,"result":{"x":1}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"\n","data":[1]}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`, `[{"jsonrpc":"2.0","id":1,"method":"m"},1]`, `{"jsonrpc":"2.0","id":1.50,"method":"\ud800"}`,
		`{"jsonrpc":"2.0","id":-999999999999999999,"method":"m","method":"m"}`, `{`, `[]`, `null`, ``,
	} {
		f.Add([]byte(frame))
	}
	methods := map[string]string{"ping": "ping", "x": "x"}
	f.Fuzz(func(t *testing.T, frame []byte) {
		before := bytes.Clone(frame)
		m, err := Parse(frame, methods)
		if !bytes.Equal(before, frame) {
			t.Fatal("the frame was changed")
		}
		if err != nil {
			refused(t, frame, m, err)
			return
		}
		again, err := Parse(encode(m), methods)
		if err != nil || !same(m, again) {
			t.Fatalf("%s\nis written as %s\nwhich is %+v, %v", frame, encode(m), again, err)
		}
		if !json.Valid(encode(m)) {
			t.Fatalf("%s is not JSON", encode(m))
		}
	})
}

// refused checks the message that comes with an error.
func refused(t *testing.T, frame []byte, m Message, err error) {
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeParse && e.Code != CodeInvalidRequest {
		t.Fatalf("the error is %v", err)
	}
	if !m.ID.IsZero() && !bytes.Contains(frame, m.ID.Append(nil)) {
		t.Fatalf("the id %s is not in the frame", m.ID)
	}
}
