package mcp_test

import (
	"encoding/json"
	"testing"

	"github.com/dowel-mcp/dowel/internal/wiretest"
	"github.com/dowel-mcp/dowel/mcp"
)

const colors = `{"message":"m","requestedSchema":{"type":"object","properties":{` +
	`"colors":{"type":"array","title":"Colours","description":"Which?","minItems":1,"items":{"anyOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]},"default":["g"]},` +
	`"sizes":{"type":"array","items":{"type":"string","enum":["S","M"]}},` +
	`"name":{"type":"string","description":"Who?","default":"Ann"},"days":{"type":"integer","default":3},"sure":{"type":"boolean","default":false}},` +
	`"required":["colors","name","sure"]}}`

func TestAdaptForm(t *testing.T) {
	want := `{"message":"m","requestedSchema":{"type":"object","properties":{` +
		`"colors.r":{"type":"boolean","title":"Colours: Red","description":"Which?"},"colors.g":{"type":"boolean","title":"Colours: Green","description":"Which?","default":true},` +
		`"sizes.S":{"type":"boolean","title":"sizes: S"},"sizes.M":{"type":"boolean","title":"sizes: M"},` +
		`"name":{"type":"string","description":"Who? (default: Ann)"},"days":{"type":"integer","description":"(default: 3)"},"sure":{"type":"boolean","default":false}},` +
		`"required":["sure"]}}`
	got := mcp.AdaptParams(r3, mcp.MethodElicit, []byte(colors))
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	frame := []byte(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":` + string(got) + `}`)
	if err := validator(t, r3).Message(frame, wiretest.Server); err != nil {
		t.Error(err)
	}
}

func TestAdaptAnswer(t *testing.T) {
	accept := func(content string) string { return `{"action":"accept","content":` + content + `}` }
	for _, c := range []struct{ name, in, want string }{
		{"chosen", accept(`{"colors.r":true,"colors.g":true,"sizes.S":false,"sizes.M":true,"name":"Bob","days":1,"sure":true}`),
			accept(`{"name":"Bob","days":1,"sure":true,"colors":["r","g"],"sizes":["M"]}`)},
		{"left empty", accept(`{"sure":true}`), accept(`{"sure":true,"colors":[],"name":"Ann","days":3}`)},
		{"no content", `{"action":"accept"}`, accept(`{"colors":[],"name":"Ann","days":3}`)},
		{"lists as they are", accept(`{"colors":["r"],"sizes":[],"name":"","days":0,"sure":true}`), accept(`{"colors":["r"],"sizes":[],"name":"","days":0,"sure":true}`)},
		{"one as text", accept(`{"colors":"r","name":"","days":0}`), accept(`{"name":"","days":0,"colors":["r"]}`)},
		{"declined", `{"action":"decline"}`, `{"action":"decline"}`},
		{"no form", accept(`[]`), accept(`[]`)},
		{"no answer", `null`, `null`},
	} {
		q := mcp.InputRequest{Method: mcp.MethodElicit, Params: json.RawMessage(colors)}
		got := mcp.AdaptAnswer(r3, q, json.RawMessage(c.in))
		if string(got) != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		if again := mcp.AdaptAnswer(r3, q, got); string(again) != string(got) {
			t.Errorf("%s: adapted again: %s", c.name, again)
		}
		for _, r := range []mcp.Revision{r4, mcp.LatestRevision} {
			if kept := mcp.AdaptAnswer(r, q, json.RawMessage(c.in)); string(kept) != c.in {
				t.Errorf("%s in %s: %s", c.name, r, kept)
			}
		}
	}
	url := mcp.InputRequest{Method: mcp.MethodElicit, Params: json.RawMessage(`{"mode":"url","message":"m","url":"https://x.test"}`)}
	if got := mcp.AdaptAnswer(r3, url, json.RawMessage(`{"action":"accept"}`)); string(got) != `{"action":"accept"}` {
		t.Errorf("a visit: %s", got)
	}
}
