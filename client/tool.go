package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
)

// Call calls a tool. in holds the arguments, which must encode as a JSON object: a struct, a map,
// raw JSON, or nil for none. Arguments and results are encoded as package schema does.
//
// Out selects the form of the result:
//
//   - string: its text
//   - [mcp.CallToolResult], or a pointer to one: the whole result
//   - []mcp.Content or [mcp.Content]: its content, or the first block of it
//   - struct{}: nothing
//   - [json.RawMessage]: the structured content; without it, the text if that is JSON, else the
//     text as a JSON string
//   - any other type: decoded from the structured content; without it, from the text, which must
//     be JSON
//
// A failure that the tool reports is a [*ToolError], for every Out. Structured content that does
// not match the tool's output schema is an [*OutputError], provided that the client has seen the
// tool in a list.
func Call[Out any](ctx context.Context, c *Client, tool string, in any, opts ...CallOptions) (out Out, err error) {
	result, err := c.callToolRaw(ctx, tool, in, options.Merge(opts))
	if err != nil {
		return out, err
	}
	if out, err = decodeOutput[Out](result); err != nil {
		return out, c.callError(mcp.MethodCallTool, tool, err)
	}
	return out, nil
}

// callToolRaw returns the result of a tool. A failure that the tool reports is an error.
func (c *Client) callToolRaw(ctx context.Context, tool string, in any, o CallOptions) (result toolOutput, err error) {
	params, err := encodeToolParams(tool, in)
	if err != nil {
		return result, c.callError(mcp.MethodCallTool, tool, err)
	}
	resp, err := c.callMethod(ctx, mcp.MethodCallTool, tool, params, o)
	if err != nil {
		return result, err
	}
	if err := requireComplete(resp); err != nil {
		return result, c.callError(mcp.MethodCallTool, tool, err)
	}
	if result = parseOutput(resp.Raw); result.failed {
		return result, c.readToolError(tool, resp.Raw)
	}
	return result, c.checkOutput(tool, result)
}

// CallTool calls a tool and returns its result, even if the tool reports a failure (IsError). With
// an [*OutputError] it returns the result too.
func (c *Client) CallTool(ctx context.Context, params mcp.CallToolParams, opts ...CallOptions) (*mcp.CallToolResult, error) {
	raw, err := mcp.Encode(&params)
	if err != nil {
		return nil, c.callError(mcp.MethodCallTool, params.Name, err)
	}
	resp, err := c.callMethod(ctx, mcp.MethodCallTool, params.Name, raw, options.Merge(opts))
	if err != nil {
		return nil, err
	}
	res := new(mcp.CallToolResult)
	if err = requireComplete(resp); err == nil {
		err = mcp.Decode(resp.Raw, res)
	}
	if err != nil {
		return nil, c.callError(mcp.MethodCallTool, params.Name, unreadable(err))
	}
	if res.IsError {
		return res, nil
	}
	return res, c.checkOutput(params.Name, parseOutput(resp.Raw))
}

func encodeToolParams(tool string, in any) (json.RawMessage, error) {
	params := append(make([]byte, 0, 128), `{"name":`...)
	params = append(rawjson.AppendString(params, tool), `,"arguments":`...)
	at := len(params)
	params, err := appendArguments(params, in)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the arguments: %w", err)
	case string(params[at:]) == "null":
		params = append(params[:at], "{}"...)
	case !rawjson.IsObject(params[at:]):
		return nil, fmt.Errorf("the arguments must be an object, but a %T encodes as something else", in)
	}
	return append(params, '}'), nil
}

// appendArguments encodes the arguments; raw JSON is appended unchanged.
func appendArguments(dst []byte, in any) ([]byte, error) {
	switch in := in.(type) {
	case nil:
		return append(dst, "{}"...), nil
	case json.RawMessage:
		if len(in) == 0 {
			return append(dst, "{}"...), nil
		}
		return append(dst, in...), rawjson.CheckAll(in)
	}
	return schema.AppendEncode(dst, in)
}

func (c *Client) readToolError(tool string, raw json.RawMessage) error {
	res := new(mcp.CallToolResult)
	if err := mcp.Decode(raw, res); err != nil {
		return c.callError(mcp.MethodCallTool, tool, unreadable(err))
	}
	return &ToolError{Server: c.serverName(), Tool: tool, Result: res}
}
