package agent

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/dowel-mcp/dowel/internal/definitions"
	"github.com/dowel-mcp/dowel/mcp"
)

// maxDecided limits the decisions on one call if its tool changes after each decision.
const maxDecided = 3

// approveCalls gets a decision on each call. A decision applies to a tool as it was shown: if the
// server changes or withdraws the tool while the user is asked, the decision is dropped.
func (r *run) approveCalls(tasks []*toolCall) error {
	for n := 0; ; n++ {
		if err := r.refreshTools(r.ctx); err != nil {
			return err
		}
		open := r.undecidedCalls(tasks)
		if len(open) == 0 {
			return nil
		}
		for _, t := range open {
			if n == maxDecided {
				t.refusal = fmt.Sprintf("the definition of %s changes all the time, and nobody can decide on it", t.use.Name)
			} else if err := r.decideCall(t); err != nil {
				return err
			}
		}
	}
}

// undecidedCalls returns the calls without a decision on the current definition of their tool.
func (r *run) undecidedCalls(tasks []*toolCall) (open []*toolCall) {
	for _, t := range tasks {
		if r.refreshTool(t); t.refusal == "" && !t.decided {
			open = append(open, t)
		}
	}
	return open
}

// refreshTool takes the current definition of a call's tool. A change since the decision on the
// call drops the decision; a withdrawn tool refuses the call.
func (r *run) refreshTool(t *toolCall) {
	if t.isOwn || t.refusal != "" {
		return
	}
	now := r.toolNamed(t.tool.Name)
	switch {
	case now == t.tool: // the list has not changed
		return
	case now == nil:
		t.refusal = withdrawnReason(t.use.Name)
		return
	case t.decided && !sameTool(t.tool, now):
		t.decided = false
		if t.granted != nil {
			delete(r.allowed, *t.granted)
			t.granted = nil
		}
		r.emit(Delta{Notice: fmt.Sprintf("the definition of %s has changed since its call was decided on: it is decided on again", t.use.Name)})
	}
	t.tool = now
}

func withdrawnReason(name string) string {
	return fmt.Sprintf("the tool %s is not available any more: its server has withdrawn it, or is gone", name)
}

// sameTool reports whether two definitions are equal. Metadata, white space and the order of
// members do not count.
func sameTool(a, b *mcp.Tool) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	one, err := json.Marshal(a)
	other, otherErr := json.Marshal(b)
	return err == nil && otherErr == nil && definitions.Equal(one, other)
}

// recordAllowed stores for which definitions the approval of a tool, or of tools of its server,
// counts. A tool that the server adds later is recorded when it is called.
func (r *run) recordAllowed(what Scope, tool *mcp.Tool) {
	r.allowedTools[tool.Name] = *tool
	if what == ThisTool {
		return
	}
	server := r.serverOf(tool.Name)
	for i := range r.listed {
		other := &r.listed[i]
		if r.serverOf(other.Name) == server && (what == ThisServer || EffectOf(other) == ReadOnly) {
			r.allowedTools[other.Name] = *other
		}
	}
}

// allowedBefore returns the definition for which the user has allowed a tool in this session, if it
// differs from the present one, or nil.
func (r *run) allowedBefore(tool *mcp.Tool) *mcp.Tool {
	if before, ok := r.allowedTools[tool.Name]; ok && !sameTool(&before, tool) {
		return &before
	}
	return nil
}

// isAllowed reports whether the user has allowed the present definition of a tool in this session.
func (r *run) isAllowed(server string, tool *mcp.Tool, effect Effect) bool {
	granted := r.allowed[allowanceKey{ThisTool, tool.Name}] || r.allowed[allowanceKey{ThisServer, server}] ||
		effect == ReadOnly && r.allowed[allowanceKey{ReadOnlyTools, server}]
	if !granted || r.allowedBefore(tool) != nil {
		return false
	}
	r.allowedTools[tool.Name] = *tool
	return true
}

// decideCall gets a decision on a call, stores it in the call, and reports it.
func (r *run) decideCall(t *toolCall) error {
	if r.ctx.Err() != nil {
		return r.endCause()
	}
	d, err := r.approveCall(t)
	if err != nil {
		return err
	}
	t.decided, t.edited = true, !sameJSON(t.requested, t.use.Input)
	if !d.Allowed {
		t.refusal = d.Reason
	}
	r.emit(d)
	return nil
}
