package jsonrpc

import (
	"errors"
	"strings"
	"testing"
)

// show writes a message as the tables below do: what it is, and each of its parts.
func show(m Message) string {
	kind, part := "", ""
	switch {
	case m.IsRequest():
		kind, part = "request", m.Method+" "+string(m.Params)
	case m.IsNotification():
		kind, part = "notification", m.Method+" "+string(m.Params)
	case m.Error != nil:
		kind, part = "error", m.Error.Error()+" "+string(m.Error.Data)
	default:
		kind, part = "result", string(m.Result)
	}
	return strings.TrimSpace(kind + " " + m.ID.String() + " " + part)
}

func TestParse(t *testing.T) {
	for _, tt := range []struct{ frame, want string }{
		// requests
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `request 1 ping`},
		{`{"jsonrpc":"2.0","id":"a","method":"x/y","params":{"b":[1]}}`, `request "a" x/y {"b":[1]}`},
		{`{"params":{},"method":"m","id":0,"jsonrpc":"2.0"}`, `request 0 m {}`},
		{"\t{ \"jsonrpc\" : \"2.0\" ,\n\"id\" : -5 , \"method\" : \"m\" , \"params\" : { \"a\" : 1 } }\r\n", `request -5 m { "a" : 1 }`},
		{`{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"m"}`, `request 123456789012345678901234567890 m`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"m"}`, `request 1.5 m`},
		{`{"jsonrpc":"2.0","id":-0,"method":"m"}`, `request -0 m`},
		{`{"jsonrpc":"2.0","id":"","method":"m"}`, `request "" m`},
		{`{"jsonrpc":"2.0","id":1,"method":"tools\/call"}`, `request 1 tools/call`},
		{`{"jsonrpc":"2.0","id":1,"\u006dethod":"ping"}`, `request 1 ping`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","unknown":[{}],"Method":"n"}`, `request 1 m`},
		// notifications
		{`{"jsonrpc":"2.0","method":"m"}`, `notification null m`},
		{`{"jsonrpc":"2.0","method":"m","params":{"requestId":1}}`, `notification null m {"requestId":1}`},
		// results
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, `result 1 {}`},
		{`{"jsonrpc":"2.0","id":"a","result":{"method":"x","error":1}}`, `result "a" {"method":"x","error":1}`},
		// errors
		{`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`, `error 1 no (-32601)`},
		{`{"jsonrpc":"2.0","id":1,"error":{"data":{"a":1},"message":"no","code":0}}`, `error 1 no (0) {"a":1}`},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no","data":null}}`, `error 1 no (1) null`},
		{`{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}`, `error null no (-32700)`},
		{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`, `error null no (-32700)`},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":5}}`, `error 1  (5)`},
	} {
		m, err := Parse([]byte(tt.frame), map[string]string{"ping": "ping"})
		if got := show(m); err != nil || got != tt.want {
			t.Errorf("Parse(%s) = %s, %v, want %s", tt.frame, got, err, tt.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct {
		frame string
		code  int
		id    string // null where none can be read
	}{
		// no JSON
		{``, CodeParse, `null`}, {`x`, CodeParse, `null`}, {`{"jsonrpc":"2.0","id":1,"method":"m"`, CodeParse, `1`}, {`{"jsonrpc":"2.0","id":1,"method":"m"}}`, CodeParse, `1`},
		{`{"jsonrpc":"2.0","id":1,"method":"m"}{}`, CodeParse, `1`}, {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", CodeParse, `1`},
		{"{\"result\":{\"text\":\"\xff\"},\"jsonrpc\":\"2.0\",\"id\":7}", CodeParse, `7`}, {"{\"result\":{\"id\":7,\"text\":\"\xff\"}}", CodeParse, `null`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":` + strings.Repeat(`{"a":`, 1100) + `1` + strings.Repeat(`}`, 1100) + `}`, CodeInvalidRequest, `1`},
		{"\ufeff{}", CodeParse, `null`}, {`{'id':1}`, CodeParse, `null`}, {`{"id":01}`, CodeParse, `null`},
		// no object
		{`null`, CodeInvalidRequest, `null`}, {`1`, CodeInvalidRequest, `null`}, {`"{}"`, CodeInvalidRequest, `null`}, {`[]`, CodeInvalidRequest, `null`},
		{`[{"jsonrpc":"2.0","id":1,"method":"m"}]`, CodeInvalidRequest, `null`},
		// version
		{`{"id":1,"method":"m"}`, CodeInvalidRequest, `1`}, {`{"jsonrpc":"1.0","id":1,"method":"m"}`, CodeInvalidRequest, `1`}, {`{"jsonrpc":2.0,"id":1,"method":"m"}`, CodeInvalidRequest, `1`},
		{`{"jsonrpc":null,"id":"x","method":"m"}`, CodeInvalidRequest, `"x"`}, {`{"jsonrpc":"2","id":1,"method":"m"}`, CodeInvalidRequest, `1`}, {`{}`, CodeInvalidRequest, `null`},
		// id
		{`{"jsonrpc":"2.0","id":null,"method":"m"}`, CodeInvalidRequest, `null`}, {`{"jsonrpc":"2.0","id":true,"method":"m"}`, CodeInvalidRequest, `null`},
		{`{"jsonrpc":"2.0","id":[1],"method":"m"}`, CodeInvalidRequest, `null`}, {`{"jsonrpc":"2.0","id":{},"method":"m"}`, CodeInvalidRequest, `null`},
		{`{"jsonrpc":"2.0","id":null,"result":{}}`, CodeInvalidRequest, `null`}, {`{"jsonrpc":"2.0","result":{}}`, CodeInvalidRequest, `null`},
		{`{"jsonrpc":"2.0","id":false,"error":{"code":1,"message":""}}`, CodeInvalidRequest, `null`},
		// members twice
		{`{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}`, CodeInvalidRequest, `1`}, {`{"jsonrpc":"2.0","id":1,"method":"m","method":"m"}`, CodeInvalidRequest, `1`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}`, CodeInvalidRequest, `1`}, {`{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"m"}`, CodeInvalidRequest, `1`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","\u0069d":2}`, CodeInvalidRequest, `1`}, {`{"jsonrpc":"2.0","id":1,"result":{},"result":{}}`, CodeInvalidRequest, `1`},
		// method
		{`{"jsonrpc":"2.0","id":1,"method":""}`, CodeInvalidRequest, `1`}, {`{"jsonrpc":"2.0","id":1,"method":5}`, CodeInvalidRequest, `1`}, {`{"jsonrpc":"2.0","id":1,"method":null}`, CodeInvalidRequest, `1`},
		{`{"jsonrpc":"2.0","id":1,"method":["m"]}`, CodeInvalidRequest, `1`},
		// params
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":[]}`, CodeInvalidRequest, `1`}, {`{"jsonrpc":"2.0","id":1,"method":"m","params":[1,2]}`, CodeInvalidRequest, `1`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}`, CodeInvalidRequest, `1`}, {`{"jsonrpc":"2.0","method":"m","params":[]}`, CodeInvalidRequest, `null`},
		// neither and both
		{`{"jsonrpc":"2.0"}`, CodeInvalidRequest, `null`}, {`{"jsonrpc":"2.0","id":1}`, CodeInvalidRequest, `1`}, {`{"jsonrpc":"2.0","id":1,"params":{}}`, CodeInvalidRequest, `1`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`, CodeInvalidRequest, `1`}, {`{"jsonrpc":"2.0","id":1,"method":"m","error":{"code":1,"message":""}}`, CodeInvalidRequest, `1`},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, CodeInvalidRequest, `1`},
		// malformed results and errors
		{`{"jsonrpc":"2.0","id":1,"result":null}`, CodeInvalidRequest, `1`}, {`{"jsonrpc":"2.0","id":1,"result":[]}`, CodeInvalidRequest, `1`}, {`{"jsonrpc":"2.0","id":1,"result":"x"}`, CodeInvalidRequest, `1`},
		{`{"jsonrpc":"2.0","id":1,"error":null}`, CodeInvalidRequest, `1`}, {`{"jsonrpc":"2.0","id":1,"error":"x"}`, CodeInvalidRequest, `1`}, {`{"jsonrpc":"2.0","id":1,"error":{}}`, CodeInvalidRequest, `1`},
		{`{"jsonrpc":"2.0","id":1,"error":{"message":"x"}}`, CodeInvalidRequest, `1`}, {`{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"x"}}`, CodeInvalidRequest, `1`},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"x"}}`, CodeInvalidRequest, `1`}, {`{"jsonrpc":"2.0","id":1,"error":{"code":null,"message":"x"}}`, CodeInvalidRequest, `1`},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":99999999999999999999,"message":"x"}}`, CodeInvalidRequest, `1`},
	} {
		m, err := Parse([]byte(tt.frame), nil)
		var e *Error
		if !errors.As(err, &e) || e.Code != tt.code || m.ID.String() != tt.id {
			t.Errorf("Parse(%s): id %s, %v, want id %s and %d", tt.frame, m.ID, err, tt.id, tt.code)
		}
		if m.Method != "" || m.Result != nil {
			t.Errorf("Parse(%s) gives a message beside its error: %+v", tt.frame, m)
		}
	}
}

func TestKnownMethodsAreNotCopied(t *testing.T) {
	methods := map[string]string{"tools/call": "tools/call"}
	frame := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`)
	if n := testing.AllocsPerRun(100, func() {
		if m, err := Parse(frame, methods); err != nil || m.Method != "tools/call" {
			t.Fatal(m, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAppend(t *testing.T) {
	for _, tt := range []struct {
		got  []byte
		want string
	}{
		{AppendRequest(nil, IntID(1), "m", nil), `{"jsonrpc":"2.0","id":1,"method":"m"}`},
		{AppendRequest([]byte("x"), mustParseID(t, `"\""`), "a\nb", []byte(`{"c":1}`)), `x{"jsonrpc":"2.0","id":"\"","method":"a\nb","params":{"c":1}}`},
		{AppendNotification(nil, "m", nil), `{"jsonrpc":"2.0","method":"m"}`},
		{AppendNotification(nil, "m", []byte(`{}`)), `{"jsonrpc":"2.0","method":"m","params":{}}`},
		{AppendResult(nil, IntID(-7), []byte(`{"a":1}`)), `{"jsonrpc":"2.0","id":-7,"result":{"a":1}}`},
		{AppendError(nil, IntID(1), &Error{Code: -32601, Message: `no "x"`}), `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no \"x\""}}`},
		{AppendError(nil, ID{}, &Error{Code: 1, Message: "\xff", Data: []byte(`[1]`)}), `{"jsonrpc":"2.0","error":{"code":1,"message":"` + "\ufffd" + `","data":[1]}}`},
	} {
		if string(tt.got) != tt.want {
			t.Errorf("got  %s\nwant %s", tt.got, tt.want)
		}
	}
}

func mustParseID(t *testing.T, raw string) ID {
	t.Helper()
	id, err := ParseID([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return id
}
