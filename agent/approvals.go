package agent

import (
	"fmt"
	"reflect"

	"github.com/dowel-mcp/dowel/mcp"
)

// maxDecided is how often a call is decided on whose tool is another one each time.
const maxDecided = 3

// approveCalls has calls decided on that are about to be made. A decision is on a tool as it is: while somebody is asked, its server may
// have said that it is another one, or gone, and then what was decided does not count.
func (r *run) approveCalls(tasks []*toolCall) error {
	for n := 0; ; n++ {
		if err := r.refreshTools(); err != nil {
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

// undecidedCalls are the calls that there is no decision on, or none on their tools as they are.
func (r *run) undecidedCalls(tasks []*toolCall) (open []*toolCall) {
	for _, t := range tasks {
		if r.refreshTool(t); t.refusal == "" && !t.decided {
			open = append(open, t)
		}
	}
	return open
}

// refreshTool looks whether a call's tool is still there, and as it was when the call was decided on.
func (r *run) refreshTool(t *toolCall) {
	if t.runOwn != nil || t.refusal != "" {
		return
	}
	now := r.toolNamed(t.tool.Name)
	switch {
	case now == t.tool: // of the same list
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
		r.emit(Noticed{fmt.Sprintf("the definition of %s has changed since its call was decided on: it is decided on again", t.use.Name)})
	}
	t.tool = now
}

func withdrawnReason(name string) string {
	return fmt.Sprintf("the tool %s is not available any more: its server has withdrawn it, or is gone", name)
}

// sameTool reports whether two definitions say the same of a tool.
func sameTool(a, b *mcp.Tool) bool {
	one, other := *a, *b
	one.Meta, other.Meta = nil, nil
	return reflect.DeepEqual(one, other)
}

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
