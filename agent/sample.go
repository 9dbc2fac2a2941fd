package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// codeRejected is the code of the error for a sample that the user has refused (client/sampling,
// error handling).
const codeRejected = -1

// permitSampling decides whether a server may use the model. Approvals for a server do not count
// if it is not sure which server asks.
func (r *run) permitSampling(ctx context.Context, server string, sure bool, p *mcp.CreateMessageParams) error {
	if err := r.checkBudget(); err != nil {
		return mcp.Errorf(codeRejected, "servers may not use the model any more: %v", err)
	}
	d, err := r.decideSampling(ctx, server, sure, p)
	if err != nil {
		if ctx.Err() == nil {
			r.cancel(err) // as for a call
		}
		return err
	}
	r.emit(d)
	if !d.Allowed {
		return mcp.Errorf(codeRejected, "%s", d.Reason)
	}
	r.samples++
	return nil
}

func (r *run) decideSampling(ctx context.Context, server string, sure bool, p *mcp.CreateMessageParams) (d Approval, err error) {
	allowed, key := Approval{Server: server, Allowed: true}, allowanceKey{sampling, server}
	switch mode := r.opts.Mode; {
	case r.samples >= r.opts.Limits.MaxSteps:
		return Approval{Server: server}.decidedBy(byMode, fmt.Sprintf("servers have used the model %d times in this run, and may not use it more often", r.samples)), nil
	case mode == ModeAll:
		return allowed.decidedBy(byMode, "everything is allowed"), nil
	case mode != ModeAsk:
		return Approval{Server: server}.decidedBy(byMode, "servers may not use the model"), nil
	case sure && r.allowed[key]:
		return allowed.decidedBy(bySession, "the user has allowed it before"), nil
	case r.opts.Approve == nil:
		return Approval{Server: server}.decidedBy(byMode, "the user has to approve that a server uses the model, and cannot be asked"), nil
	}
	a, err := r.askUser(ctx, Question{Server: server, Sampling: p})
	if err != nil || !a.Allow {
		return Approval{Server: server}.decidedBy(byUser, a.refusalReason()), err
	}
	if a.For != "" && sure {
		r.allowed[key] = true
	}
	return allowed.decidedBy(byUser, "the user has allowed it"), nil
}

// sampleModel has the model reply to a server's request.
func sampleModel(ctx context.Context, m Model, p *mcp.CreateMessageParams, notice func(string)) (*mcp.CreateMessageResult, *Usage, error) {
	for delta, err := range m.Reply(ctx, conversationOf(p)) {
		if err != nil {
			return nil, nil, fmt.Errorf("the model has not replied: %w", err)
		}
		if delta.Notice != "" {
			notice(delta.Notice)
		}
		if delta.Message != nil {
			return samplingResult(m, p, delta.Message.Content, delta.Message.Cut), delta.Message.Usage, nil
		}
	}
	return nil, nil, errors.New("the model has not replied: its reply has no end")
}

// conversationOf returns a server's request as a conversation. The requested temperature is
// ignored; stop sequences are applied to the reply.
func conversationOf(p *mcp.CreateMessageParams) Conversation {
	c := Conversation{System: p.SystemPrompt, Tools: p.Tools, MaxTokens: p.MaxTokens}
	if p.ToolChoice != nil && len(p.Tools) > 0 {
		c.ToolChoice = p.ToolChoice.Mode
	}
	h := history{}
	for _, m := range p.Messages {
		h.appendContent(m.Role, m.Content...)
	}
	c.Messages = h.messages
	return c
}

// samplingResult returns a reply in the form for the server.
func samplingResult(m Model, p *mcp.CreateMessageParams, content []mcp.Content, cut bool) *mcp.CreateMessageResult {
	res := &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: modelName(m), StopReason: "endTurn"}
	stopped := false
	for _, block := range content {
		if stopped = cutAtStop(&block, p.StopSequences); block.Type != mcp.ContentText || block.Text != "" {
			res.Content = append(res.Content, block)
		}
		if stopped {
			break
		}
	}
	if len(res.Content) == 0 {
		res.Content = mcp.SamplingContent{mcp.Text("")}
	}
	switch {
	case stopped:
		res.StopReason = "stopSequence"
	case slices.ContainsFunc(res.Content, func(c mcp.Content) bool { return c.ToolUse != nil }):
		res.StopReason = "toolUse"
	case cut:
		res.StopReason = "maxTokens"
	}
	return res
}

// cutAtStop cuts a text at the first stop sequence in it.
func cutAtStop(c *mcp.Content, sequences []string) (stopped bool) {
	for _, s := range sequences {
		if at := strings.Index(c.Text, s); s != "" && c.Type == mcp.ContentText && at >= 0 {
			c.Text, stopped = c.Text[:at], true
		}
	}
	return stopped
}

func modelName(m Model) string {
	if named, ok := m.(interface{ Name() string }); ok && named.Name() != "" {
		return named.Name()
	}
	return "unknown"
}

// lastMessageLine returns the beginning of a request's last message in one line.
func lastMessageLine(p *mcp.CreateMessageParams) string {
	if len(p.Messages) == 0 {
		return ""
	}
	var texts []string
	for _, c := range p.Messages[len(p.Messages)-1].Content {
		texts = append(texts, c.String())
	}
	return oneLine(strings.Join(texts, " "))
}

// oneLine returns the beginning of a text in one line.
func oneLine(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(text), " ")
	if head := sliceRunes(text, 0, most); len(head) < len(text) {
		return head + "…"
	}
	return text
}
