package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/mcp"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
)

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// function is a tool's definition, in bytes that keep the order of the schema's members.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitzero"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict,omitzero"`
}

// tools turns tools into those of chat completions. One that cannot be made acceptable is left out, with a warning: the server
// would refuse the conversation.
func (m *Model) tools(tools []mcp.Tool) (all []sdk.ChatCompletionToolUnionParam) {
	seen := map[string]bool{}
	for i := range tools {
		t := &tools[i]
		if m.opts.MaxTools > 0 && len(all) == m.opts.MaxTools {
			m.warn(fmt.Sprintf("%s takes %d tools at most: %s and those behind it are left out", m.place(), m.opts.MaxTools, t.Name))
			break
		}
		if seen[t.Name] {
			m.warn(fmt.Sprintf("there are two tools %s: the second is left out", t.Name))
			continue
		}
		f, err := m.function(t)
		if err != nil {
			m.warn(fmt.Sprintf("the tool %s is left out: %v", t.Name, err))
			continue
		}
		seen[t.Name] = true
		all = append(all, sdk.ChatCompletionFunctionTool(param.Override[shared.FunctionDefinitionParam](f)))
	}
	return all
}

func (m *Model) function(t *mcp.Tool) (json.RawMessage, error) {
	if !toolName.MatchString(t.Name) {
		return nil, fmt.Errorf("its name has to consist of at most 64 letters, digits, _ and -")
	}
	parameters, notes, err := acceptable(t.InputSchema)
	if err != nil {
		return nil, err
	}
	for _, note := range notes {
		m.warn(fmt.Sprintf("the schema of the tool %s is loosened for the model: %s", t.Name, note))
	}
	f := function{Name: t.Name, Description: t.Description, Strict: m.opts.Strict && fitsStrict(parameters)}
	f.Description, f.Parameters = m.describe(t.Description, parameters, f.Strict)
	return encode(f)
}

// describe cuts a description that is too long at the end of a word; the rest goes into that of the parameters, which has no
// bound.
func (m *Model) describe(text string, parameters json.RawMessage, strict bool) (string, json.RawMessage) {
	limit := m.opts.MaxDescription
	if limit <= 0 || utf8.RuneCountInString(text) <= limit {
		return text, parameters
	}
	head := string([]rune(text)[:limit-1])
	if space := strings.LastIndexAny(head, " \n"); space > len(head)/2 {
		head = head[:space]
	}
	s, err := readSchema(parameters)
	if err != nil {
		return head + "…", parameters
	}
	rest := "…" + text[len(head):]
	if had := s.text("description"); had != "" {
		rest += "\n\n" + had
	}
	s.set("description", quoted(rest))
	return head + "…", s.bytes()
}

func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
