package jsonfloor

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/mcp"
)

type request struct {
	JSONRPC string `json:"jsonrpc"`
	ID      int    `json:"id"`
	Method  string `json:"method"`
	Params  params `json:"params"`
}

type params struct {
	Meta      meta       `json:"_meta"`
	Name      string     `json:"name,omitempty"`
	Arguments *peer.Echo `json:"arguments,omitempty"`
}

type meta struct {
	Version      string   `json:"io.modelcontextprotocol/protocolVersion"`
	Client       client   `json:"io.modelcontextprotocol/clientInfo"`
	Capabilities struct{} `json:"io.modelcontextprotocol/clientCapabilities"`
}

type client struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type response struct {
	JSONRPC string `json:"jsonrpc"`
	ID      int    `json:"id"`
	Result  result `json:"result"`
}

// result is the result of a call or of a list request.
type result struct {
	ResultType string     `json:"resultType"`
	Content    []content  `json:"content,omitempty"`
	Tools      []mcp.Tool `json:"tools,omitempty"`
}

type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func ask(id int, method string, message *string) []byte {
	r := request{JSONRPC: "2.0", ID: id, Method: method, Params: params{Meta: meta{
		Version: string(peer.Modern), Client: client{"floor", "1"},
	}}}
	if message != nil {
		r.Params.Name, r.Params.Arguments = "echo", &peer.Echo{Message: *message}
	}
	return encode(r)
}

func (s *server) answer(frame []byte) []byte {
	var r request
	if err := json.Unmarshal(frame, &r); err != nil {
		panic(err)
	}
	out := response{JSONRPC: "2.0", ID: r.ID, Result: result{ResultType: "complete"}}
	if r.Method == "tools/list" {
		out.Result.Tools = s.tools
	} else {
		out.Result.Content = []content{{"text", r.Params.Arguments.Message}}
	}
	return encode(out)
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func decode(frame []byte) (r response, err error) {
	err = json.Unmarshal(frame, &r)
	return r, err
}
