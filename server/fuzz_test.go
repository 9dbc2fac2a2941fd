package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// FuzzCursor never takes a cursor for one that was not sealed.
func FuzzCursor(f *testing.F) {
	s := New("fuzz", "1", &Options{PageSize: 1})
	for _, name := range []string{"a", "b", "c"} {
		Tool(s, name, "", func(context.Context, struct{}) (string, error) { return "", nil })
	}
	list := func(cursor string) (*mcp.Result, error) {
		params, err := mcp.Encode(mcp.ListParams{Cursor: &cursor})
		if err != nil {
			return nil, mcp.InvalidParams("%v", err)
		}
		return s.ServeMCP(context.Background(), &mcp.Request{Method: mcp.MethodListTools, Params: params})
	}
	var sealed []string
	cursor := s.sealCursor(&mcp.Request{Method: mcp.MethodListTools}, position{seq: 1, name: "a"})
	for range 3 {
		res, err := list(cursor)
		if err != nil {
			f.Fatal(err)
		}
		sealed = append(sealed, cursor)
		var page struct {
			NextCursor string `json:"nextCursor"`
		}
		if err := json.Unmarshal(res.Raw, &page); err != nil {
			f.Fatal(err)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	for _, seed := range append(sealed, "", "AAAA", sealed[0]+"=", sealed[0][1:], s.states.Seal([]byte("12345678\x00\x01a"), []byte("tools/list\x00"))) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		_, err := list(cursor)
		for _, good := range sealed {
			if cursor == good {
				if err != nil {
					t.Errorf("refused %q: %v", cursor, err)
				}
				return
			}
		}
		if e := (*mcp.Error)(nil); !errors.As(err, &e) || e.Code != -32602 {
			t.Errorf("%q: %v", cursor, err)
		}
	})
}

// FuzzRequestState never takes state for its own that was not sealed for the request, whatever the request.
func FuzzRequestState(f *testing.F) {
	s := New("fuzz", "1", nil)
	ran := false
	Tool(s, "t", "", func(ctx context.Context, _ map[string]any) (string, error) {
		ran = true
		return Ask[string](ctx, "k", "?")
	})
	const arguments = `{"a":1.5,"b":["x"]}`
	request := func(name, arguments, state string) *mcp.Request {
		params := fmt.Sprintf(`{"name":%s,"arguments":%s,"requestState":%s,"inputResponses":{"k":{"action":"accept","content":{"value":"v"}}}}`,
			quote(name), arguments, quote(state))
		return &mcp.Request{Method: mcp.MethodCallTool, Params: json.RawMessage(params), ClientCapabilities: json.RawMessage(`{"elicitation":{}}`)}
	}
	first, err := s.ServeMCP(context.Background(), &mcp.Request{
		Method: mcp.MethodCallTool, Params: json.RawMessage(`{"name":"t","arguments":` + arguments + `}`), ClientCapabilities: json.RawMessage(`{"elicitation":{}}`),
	})
	if err != nil {
		f.Fatal(err)
	}
	sealed := *first.Value.(*mcp.InputRequiredResult).RequestState
	expired := s.newCall(context.Background(), &mcp.Request{Method: mcp.MethodCallTool}, callParams{name: []byte("t"), arguments: json.RawMessage(arguments)})
	plain, err := mcp.Encode(&requestState{Expires: time.Now().Add(-time.Second).Unix()})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{sealed, "", sealed + "A", sealed[:10], s.cursors.Seal(plain, expired.stateBinding()), s.states.Seal(plain, expired.stateBinding())} {
		f.Add(seed, 1.5)
	}
	f.Add(sealed, 1.25)
	f.Fuzz(func(t *testing.T, state string, a float64) {
		number, err := json.Marshal(a)
		if err != nil {
			return
		}
		ran = false
		res, err := s.ServeMCP(context.Background(), request("t", fmt.Sprintf(`{"b":["\u0078"],"a":%s}`, number), state))
		if state == sealed && a == 1.5 {
			if err != nil || res.Type != "" {
				t.Errorf("refused: %v", err)
			}
			return
		}
		if e := (*mcp.Error)(nil); !errors.As(err, &e) || e.Code != -32602 || ran {
			t.Errorf("%q with %v: %v, handler ran: %v", state, a, err, ran)
		}
	})
}

func quote(s string) string {
	raw, err := mcp.Encode(s)
	if err != nil { // no UTF-8
		return `"?"`
	}
	return string(raw)
}

// FuzzCanonical gives every encoding of a value one form.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"b":1,"a":[1.50,"\u00e9",null,true,{}]}`, `-0.0`, `1e5`, `" "`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if !json.Valid([]byte(in)) {
			return
		}
		var indented []byte
		if raw, err := json.MarshalIndent(json.RawMessage(in), "", "\t"); err == nil {
			indented = raw
		}
		once := string(appendCanonical(nil, []byte(in)))
		if other := string(appendCanonical(nil, indented)); indented != nil && other != once {
			t.Errorf("%s\n%s", once, other)
		}
		if twice := string(appendCanonical(nil, []byte(once))); twice != once {
			t.Errorf("%s\n%s", once, twice)
		}
	})
}
