package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// goOn is what the user says where the model has had the last word: newer models refuse a conversation that ends with theirs.
const goOn = "Go on."

// nothing is what the user has said where the model has begun, which the API refuses.
const nothing = "(nothing)"

// noTool stands for tools that have all gone: the API wants some where there have been calls.
var noTool = sdk.ToolParam{Name: "no_tool", Description: param.NewOpt("There are no tools at present. Do not call this."),
	InputSchema: sdk.ToolInputSchemaParam{Type: "object"}}

// request is a conversation in the API's words.
func (m *Model) request(c agent.Conversation) sdk.MessageNewParams {
	p := sdk.MessageNewParams{
		Model:     sdk.Model(m.opts.Model),
		MaxTokens: int64(m.opts.MaxTokens),
		Messages:  m.turns(c.Messages),
		Tools:     m.tools(c.Tools),
	}
	if len(p.Tools) == 0 && slices.ContainsFunc(c.Messages, func(msg agent.Message) bool { return len(msg.Calls()) > 0 }) {
		p.Tools = []sdk.ToolUnionParam{{OfTool: &noTool}}
	}
	if c.MaxTokens > 0 {
		p.MaxTokens = min(p.MaxTokens, int64(c.MaxTokens))
	}
	switch {
	case len(p.Tools) == 0:
	case c.ToolChoice == "none":
		p.ToolChoice.OfNone = new(sdk.NewToolChoiceNoneParam())
	case p.Tools[0].OfTool == &noTool:
	case c.ToolChoice == "required" && m.opts.Thinking == 0: // who thinks may not be made to call
		p.ToolChoice.OfAny = &sdk.ToolChoiceAnyParam{}
	}
	if strings.TrimSpace(c.System) != "" {
		p.System = []sdk.TextBlockParam{{Text: c.System, CacheControl: sdk.NewCacheControlEphemeralParam()}}
	}
	m.think(&p)
	markEnd(p.Messages)
	return p
}

// think asks the model to think. A budget goes only with calls that thoughts stand before: the API wants them back, and where they
// are of another model or forgotten it takes the rest of the turn without.
func (m *Model) think(p *sdk.MessageNewParams) {
	switch budget := int64(m.opts.Thinking); {
	case budget == 0:
	case budget < 0 || m.adaptive.Load():
		p.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{Display: sdk.ThinkingConfigAdaptiveDisplaySummarized}
	case !thoughtless(p.Messages):
		p.MaxTokens += budget
		p.Thinking.OfEnabled = &sdk.ThinkingConfigEnabledParam{BudgetTokens: budget}
	}
}

// thoughtless reports whether the conversation ends with results of calls that nothing has been thought before.
func thoughtless(messages []sdk.MessageParam) bool {
	n := len(messages)
	if n < 2 || messages[n-1].Content[0].OfToolResult == nil {
		return false
	}
	first := messages[n-2].Content[0]
	return first.OfText != nil || first.OfToolUse != nil // thoughts are raw
}

// markEnd marks the ends of the last two messages of the user for the cache: the second is where the request before has ended, and a
// mark is found again only within some blocks of another.
func markEnd(messages []sdk.MessageParam) {
	marks := 2
	for i := len(messages) - 1; i >= 0 && marks > 0; i-- {
		if messages[i].Role != sdk.MessageParamRoleUser {
			continue
		}
		if last := messages[i].Content[len(messages[i].Content)-1].GetCacheControl(); last != nil {
			*last = sdk.NewCacheControlEphemeralParam()
		}
		marks--
	}
}

// turns are the messages: roles take turns, and none is empty.
func (m *Model) turns(messages []agent.Message) []sdk.MessageParam {
	t := turns{Model: m, seen: map[string]bool{}}
	for _, msg := range messages {
		if msg.Role == mcp.RoleAssistant {
			t.add(sdk.MessageParamRoleAssistant, t.assistant(msg))
		} else {
			t.add(sdk.MessageParamRoleUser, t.user(msg))
		}
	}
	if len(t.all) > 0 && t.all[0].Role == sdk.MessageParamRoleAssistant {
		t.all = slices.Insert(t.all, 0, said(nothing))
	}
	if n := len(t.all); n == 0 || t.all[n-1].Role == sdk.MessageParamRoleAssistant {
		t.add(sdk.MessageParamRoleUser, said(goOn).Content)
	}
	return t.all
}

// said is a message of the user's.
func said(text string) sdk.MessageParam { return sdk.NewUserMessage(sdk.NewTextBlock(text)) }

type turns struct {
	*Model
	all     []sdk.MessageParam
	calls   int
	seen    map[string]bool // ids of calls, as they are sent
	pending []pending
}

// pending is a call that has no result yet: its id, and the one that is sent.
type pending struct{ id, sent string }

func (t *turns) add(role sdk.MessageParamRole, blocks []sdk.ContentBlockParamUnion) {
	if len(blocks) == 0 {
		return
	}
	if n := len(t.all); n > 0 && t.all[n-1].Role == role {
		t.all[n-1].Content = append(t.all[n-1].Content, blocks...)
		return
	}
	t.all = append(t.all, sdk.MessageParam{Role: role, Content: blocks})
}

func (t *turns) user(msg agent.Message) []sdk.ContentBlockParamUnion {
	var results, rest []sdk.ContentBlockParamUnion
	for _, c := range msg.Content {
		if c.ToolResult != nil {
			results = append(results, sdk.ContentBlockParamUnion{OfToolResult: t.result(c.ToolResult)})
		} else {
			rest = append(rest, t.piece(c).block()...)
		}
	}
	return append(results, rest...)
}

// assistant is what the model has said. Thoughts that nothing stands behind are left out: the API refuses a message that ends so.
func (t *turns) assistant(msg agent.Message) (blocks []sdk.ContentBlockParamUnion) {
	t.pending = nil
	var end int // behind the last block that is no thought
	add := func(thought bool, more ...sdk.ContentBlockParamUnion) {
		if blocks = append(blocks, more...); !thought && len(more) > 0 {
			end = len(blocks)
		}
	}
	thoughts := t.thoughts(msg.Reasoning)
	for i, c := range msg.Content {
		for len(thoughts) > 0 && thoughts[0].Before <= i {
			add(thoughts[0].thought(), thoughts[0].param())
			thoughts = thoughts[1:]
		}
		switch {
		case c.ToolUse != nil:
			add(false, sdk.NewToolUseBlock(t.id(c.ToolUse.ID), object(c.ToolUse.Input), nameOf(c.ToolUse.Name)))
		case c.Type == mcp.ContentText:
			add(false, piece{text: c.Text}.block()...)
		default:
			add(false, piece{text: c.String()}.block()...) // a model says nothing else yet
		}
	}
	for _, k := range thoughts {
		add(k.thought(), k.param())
	}
	return blocks[:end]
}

var (
	idPattern   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	namePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
)

// id returns a call's as it is sent: its own, unless the API would not take it, or has had it already. Servers exist that count
// calls from 0 in each reply.
func (t *turns) id(own string) string {
	sent := own
	for t.calls++; !idPattern.MatchString(sent) || t.seen[sent]; {
		sent = fmt.Sprintf("call_%d", t.calls)
		if t.seen[sent] {
			t.calls++
		}
	}
	t.seen[sent] = true
	t.pending = append(t.pending, pending{own, sent})
	return sent
}

// sent returns the id under which a call has been sent.
func (t *turns) sent(id string) string {
	i := slices.IndexFunc(t.pending, func(p pending) bool { return p.id == id })
	if i < 0 {
		return id
	}
	sent := t.pending[i].sent
	t.pending = slices.Delete(t.pending, i, i+1)
	return sent
}

// nameOf is a called tool's name as the API takes it, which it does not from all models.
func nameOf(name string) string {
	if namePattern.MatchString(name) {
		return name
	}
	mended := strings.Map(func(r rune) rune {
		if idPattern.MatchString(string(r)) {
			return r
		}
		return '_'
	}, name)
	return mended[:min(len(mended), 128)] + strings.Repeat("_", max(0, 1-len(mended)))
}

// object is a call's input, which has to be an object whatever a model has made.
func object(input json.RawMessage) json.RawMessage {
	switch trimmed := bytes.TrimSpace(input); {
	case len(trimmed) == 0, string(trimmed) == "null":
		return json.RawMessage(`{}`)
	case trimmed[0] == '{' && json.Valid(trimmed):
		return input
	case trimmed[0] == '"' && json.Valid(trimmed):
		return json.RawMessage(`{"not_json":` + string(trimmed) + `}`)
	}
	text, _ := json.Marshal(string(input)) // a string always can be
	return json.RawMessage(`{"not_json":` + string(text) + `}`)
}

// kept is a block that is sent back as it was: where it stood among the content, and its bytes.
type kept struct {
	Before int             `json:"before"`
	Block  json.RawMessage `json:"block"`
}

func (k kept) param() sdk.ContentBlockParamUnion {
	return param.Override[sdk.ContentBlockParamUnion](k.Block)
}

// thought reports whether it is what the model has thought, and not a tool that runs at the provider's.
func (k kept) thought() bool {
	var block struct{ Type string }
	return json.Unmarshal(k.Block, &block) == nil && strings.HasSuffix(block.Type, "thinking")
}
