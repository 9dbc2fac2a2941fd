package gateway

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// nameAsker begins the messages of a result's elicitations with the name of the upstream that asks.
// To the client all upstreams are one server, so it could not tell its user who asks
// (client/elicitation: security considerations). The given result is not changed.
func nameAsker(upstream string, res *mcp.Result) *mcp.Result {
	named := *res
	if asked, ok := res.Value.(*mcp.InputRequiredResult); ok {
		own := *asked
		own.InputRequests = make(map[string]mcp.InputRequest, len(asked.InputRequests))
		for key, q := range asked.InputRequests {
			if q.Method == mcp.MethodElicit {
				q.Params = nameInQuestion(upstream, q.Params)
			}
			own.InputRequests[key] = q
		}
		named.Value = &own
		return &named
	}
	asked := rawjson.Lookup(res.Raw, "inputRequests")
	requests := json.RawMessage(asked)
	for it := rawjson.Object(asked); it.Next(); {
		if rawjson.Is(rawjson.Lookup(it.Value, "method"), mcp.MethodElicit) {
			params := nameInQuestion(upstream, rawjson.Lookup(it.Value, "params"))
			requests = rawjson.Replace(requests, string(it.Key), rawjson.Set(it.Value, "params", params))
		}
	}
	if requests != nil {
		named.Raw = rawjson.Replace(res.Raw, "inputRequests", requests)
	}
	return &named
}

// nameInQuestion returns the params of an elicitation with the upstream's name in the message.
func nameInQuestion(upstream string, params json.RawMessage) json.RawMessage {
	message, _ := rawjson.String(rawjson.Lookup(params, "message"))
	if params == nil {
		params = json.RawMessage("{}")
	}
	text := mcpwire.AskerPrefix(upstream) + mcpwire.CleanQuestion(message)
	return rawjson.Set(params, "message", rawjson.AppendString(nil, text))
}
