package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/mcp"
)

var toolName = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)

// toolDefinitions returns the definitions of tools. A tool that cannot be made acceptable is left
// out with a warning, because the server would refuse the whole conversation.
func (m *model) toolDefinitions(tools []mcp.Tool) (all []tool) {
	seen := map[string]bool{}
	for i := range tools {
		t := &tools[i]
		if m.opts.MaxTools > 0 && len(all) == m.opts.MaxTools {
			m.warnOnce(fmt.Sprintf("%s takes %d tools at most: %s and those behind it are left out", m.place(), m.opts.MaxTools, t.Name))
			break
		}
		if seen[t.Name] {
			m.warnOnce(fmt.Sprintf("there are two tools %s: the second is left out", t.Name))
			continue
		}
		f, err := m.functionOf(t)
		if err != nil {
			m.warnOnce(fmt.Sprintf("the tool %s is left out: %v", t.Name, err))
			continue
		}
		seen[t.Name] = true
		all = append(all, tool{Function: f, Type: "function"})
	}
	return all
}

func (m *model) functionOf(t *mcp.Tool) (f function, err error) {
	if !toolName().MatchString(t.Name) {
		return f, fmt.Errorf("its name has to consist of at most 64 letters, digits, _ and -")
	}
	parameters, notes, err := acceptSchema(t.InputSchema)
	if err != nil {
		return f, err
	}
	for _, note := range notes {
		m.warnOnce(fmt.Sprintf("the schema of the tool %s is loosened for the model: %s", t.Name, note))
	}
	f = function{Name: t.Name, Strict: m.opts.Strict && fitsStrict(parameters)}
	f.Description, f.Parameters = m.splitDescription(t.Description, parameters)
	return f, nil
}

// splitDescription cuts a description that is longer than MaxDescription at the end of a word.
// The rest goes into the description of the parameters, which has no limit.
func (m *model) splitDescription(text string, parameters json.RawMessage) (string, json.RawMessage) {
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
	if had := s.stringMember("description"); had != "" {
		rest += "\n\n" + had
	}
	s.setMember("description", quoteJSON(rest))
	return head + "…", s.encode()
}
