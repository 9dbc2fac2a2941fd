package gateway_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/jsonrpc"
)

// The state of a modern upstream, which takes all clients for one, works for its principal only.
func TestStatesOfModernUpstreams(t *testing.T) {
	g, _ := over(t, hub.Definition{Name: "every", Target: everything.New()})
	req := request("ada", `{"name":"every__test_elicitation","arguments":{"message":"who?"}}`)
	res, err := g.ServeMCP(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var asked struct {
		RequestState  string                     `json:"requestState"`
		InputRequests map[string]json.RawMessage `json:"inputRequests"`
	}
	if err := json.Unmarshal(res.Raw, &asked); err != nil || asked.RequestState == "" || len(asked.InputRequests) != 1 {
		t.Fatalf("%s, %v", res.Raw, err)
	}
	answer := func(principal, state string) (string, error) {
		for key := range asked.InputRequests {
			again := request(principal, `{"name":"every__test_elicitation","arguments":{"message":"who?"},"requestState":"`+state+
				`","inputResponses":{"`+key+`":{"action":"accept","content":{"username":"Ada","email":"a@b.cd"}}}}`)
			res, err := g.ServeMCP(t.Context(), again)
			if err != nil {
				return "", err
			}
			return string(res.Raw), nil
		}
		return "", nil
	}
	for _, principal := range []string{"eve", ""} {
		if text, err := answer(principal, asked.RequestState); strings.Contains(text, "accept") {
			t.Errorf("%q continues another client's call: %s %v", principal, text, err)
		}
	}
	if _, err := answer("ada", asked.RequestState[:len(asked.RequestState)-2]); code(err, jsonrpc.CodeInvalidParams) != nil {
		t.Errorf("a cut state: %v", err)
	}
	if text, err := answer("ada", asked.RequestState); err != nil || !strings.Contains(text, "accept") {
		t.Errorf("the asking client: %s %v", text, err)
	}
}
