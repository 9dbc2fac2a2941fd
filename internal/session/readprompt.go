package session

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/tokencount"
	"github.com/dowel-mcp/dowel/mcp"
)

// Prompt is a request to a model, complete.
type Prompt struct {
	Number     int             `json:"number"`
	At         time.Time       `json:"at,omitzero"`
	System     string          `json:"system"`
	Tools      []mcp.Tool      `json:"tools"`
	Messages   []agent.Message `json:"messages"`
	ToolChoice string          `json:"toolChoice,omitzero"`
	MaxTokens  int             `json:"maxTokens,omitzero"`
	// Tokens are estimates.
	Tokens PromptTokens `json:"tokens"`
}

// PromptTokens are the estimated tokens of the parts of a request. PerTool and PerMessage are in
// the order of the request.
type PromptTokens struct {
	System     int   `json:"system"`
	Tools      int   `json:"tools"`
	Messages   int   `json:"messages"`
	PerTool    []int `json:"perTool"`
	PerMessage []int `json:"perMessage"`
}

// errNoPrompt is the error of a number without a request.
var errNoPrompt = errors.New("there is no request with this number: it may be older than dowel's recording of requests")

// ReadPrompt returns a request of a session's file by its number, from 1 on.
func ReadPrompt(path string, number int) (*Prompt, error) {
	var said conversation
	var found *Prompt
	var problem error
	system, tools, n := "", json.RawMessage("[]"), 0
	err := readRecords(path, &Trace{}, func(r *record) {
		if p := r.Prompt; p != nil {
			n++
			if p.System != nil {
				system = *p.System
			}
			if p.Tools != nil {
				tools = p.Tools
			}
			if n == number {
				found, problem = rebuildPrompt(r, said, system, tools)
				found.Number = n
			}
		}
		said.applyRecord(r)
	})
	switch {
	case err != nil:
		return nil, err
	case problem != nil:
		return nil, problem
	case found == nil:
		return nil, errNoPrompt
	}
	found.countTokens()
	return found, nil
}

// rebuildPrompt returns the request of a record. said is the conversation before it.
func rebuildPrompt(r *record, said conversation, system string, tools json.RawMessage) (*Prompt, error) {
	p := &Prompt{System: system, Tools: []mcp.Tool{}, Messages: []agent.Message{}, ToolChoice: r.Prompt.ToolChoice, MaxTokens: r.Prompt.MaxTokens}
	if r.At != nil {
		p.At = *r.At
	}
	if r.Prompt.Same < 0 || r.Prompt.Same > len(said) {
		return p, errors.New("the request cannot be shown: lines of the conversation before it cannot be read")
	}
	p.Messages = append(append(p.Messages, said[:r.Prompt.Same]...), r.Prompt.More...)
	return p, json.Unmarshal(tools, &p.Tools)
}

// countTokens estimates the tokens of each part.
func (p *Prompt) countTokens() {
	p.Tokens.System = tokencount.EstimateText(p.System)
	p.Tokens.PerTool, p.Tokens.PerMessage = make([]int, 0, len(p.Tools)), make([]int, 0, len(p.Messages))
	for _, t := range p.Tools {
		n := tokencount.EstimateTool(t.Name, t.Description, t.InputSchema)
		p.Tokens.PerTool, p.Tokens.Tools = append(p.Tokens.PerTool, n), p.Tokens.Tools+n
	}
	for i := range p.Messages {
		n := estimateMessage(&p.Messages[i])
		p.Tokens.PerMessage, p.Tokens.Messages = append(p.Tokens.PerMessage, n), p.Tokens.Messages+n
	}
}

// estimateMessage estimates the tokens of a message's texts, calls and results.
func estimateMessage(m *agent.Message) (n int) {
	for _, c := range m.Content {
		switch {
		case c.ToolUse != nil:
			n += tokencount.EstimateText(c.ToolUse.Name) + tokencount.EstimateText(c.ToolUse.Input)
		case c.ToolResult != nil:
			n += tokencount.EstimateText(DescribeContent(c.ToolResult.Content))
		default:
			n += tokencount.EstimateText(c.String())
		}
	}
	return n
}
