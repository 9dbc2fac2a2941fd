package server

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
)

// toolResult is the result of a call in one allocation.
type toolResult struct {
	mcp.Result
	call  mcp.CallToolResult
	block [1]mcp.Content
	// nilType is the type of a nil pointer that the handler returned, or nil.
	nilType reflect.Type
}

func newToolResult(s *Server) *toolResult {
	r := &toolResult{}
	r.Value, r.ServerInfo = &r.call, s.info
	return r
}

// toolError returns a result that tells a model about an error.
func (s *Server) toolError(text string) *mcp.Result {
	r := newToolResult(s)
	r.call.IsError = true
	r.setText(text)
	return &r.Result
}

func (r *toolResult) setText(text string) { r.setContent(mcp.Text(text)) }

func (r *toolResult) setContent(c mcp.Content) {
	r.block[0] = c
	r.call.Content = r.block[:]
}

// hasStructuredOutput reports whether an output of type t becomes structured content with a schema.
func hasStructuredOutput(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[string](), reflect.TypeFor[struct{}](), reflect.TypeFor[any](), reflect.TypeFor[mcp.Content](),
		reflect.TypeFor[[]mcp.Content](), reflect.TypeFor[*mcp.CallToolResult](), reflect.TypeFor[mcp.CallToolResult]():
		return false
	}
	return true
}

// setOutput sets the result from a handler's output; out points to it.
func (r *toolResult) setOutput(out any) error {
	switch out := out.(type) {
	case *string:
		r.setText(*out)
	case *struct{}:
	case *mcp.Content:
		r.setContent(*out)
	case *[]mcp.Content:
		r.call.Content = *out
	case **mcp.CallToolResult:
		if *out != nil {
			r.call = **out
		}
	case *mcp.CallToolResult:
		r.call = *out
	case *any:
		return r.setAny(*out)
	default:
		return r.setStructured(out)
	}
	return nil
}

// setAny sets the result from an output of interface type.
func (r *toolResult) setAny(out any) error {
	switch out := out.(type) {
	case nil, struct{}:
	case string:
		r.setText(out)
	case mcp.Content:
		r.setContent(out)
	case []mcp.Content:
		r.call.Content = out
	case *mcp.CallToolResult:
		return r.setOutput(&out)
	case mcp.CallToolResult:
		r.call = out
	default:
		return r.setStructured(out)
	}
	return nil
}

func (r *toolResult) setStructured(out any) error {
	raw, err := schema.Encode(out)
	if err != nil {
		return invalidOutput(err)
	}
	if v := reflect.ValueOf(out); v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil() {
		r.nilType = v.Type().Elem()
	}
	r.call.StructuredContent = raw
	r.setText(string(raw))
	return nil
}

// errInvalidOutput reports a fault of the handler. The caller gets this text, and the log the error
// that wraps it.
var errInvalidOutput = errors.New("the tool's output was invalid: this is a fault of the server, not of the arguments")

func invalidOutput(err error) error { return fmt.Errorf("%w: %w", errInvalidOutput, err) }

var errNoStructure = errors.New("the tool declares an output schema but returned no structured content")

// checkOutput validates the result against the tool's output schema, and its _meta. Without a
// schema, structured content must still be JSON.
func (r *toolResult) checkOutput(t *registeredTool) error {
	if err := checkToolMeta(&r.call); err != nil {
		return invalidOutput(err)
	}
	if t.output == nil && r.call.StructuredContent != nil {
		if err := rawjson.CheckAll(r.call.StructuredContent); err != nil {
			return invalidOutput(fmt.Errorf("structuredContent: %w", err))
		}
	}
	if t.output == nil || r.call.IsError {
		return nil
	}
	err := errNoStructure
	if r.call.StructuredContent != nil {
		err = t.output.Validate(r.call.StructuredContent)
	}
	if err == nil {
		return nil
	}
	if r.nilType != nil {
		err = fmt.Errorf("the handler returned a nil %s, which its output schema does not allow: %w", r.nilType, err)
	}
	return invalidOutput(err)
}
