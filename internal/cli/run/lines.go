package run

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/agentview"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// lineViewer shows a task to people: the answer on standard output, as it comes where that is a terminal, and what happens on
// standard error, where somebody reads it.
type lineViewer struct {
	*factory.Factory
	p       *taskProgress
	lines   *agentview.Renderer
	streams bool // what the model says is shown at once
	hinted  bool // that --answer would help
	stop    chan struct{}
	ticking sync.WaitGroup
}

// tick is how often what stands on the terminal is looked at again.
const tick = 200 * time.Millisecond

func newLineViewer(f *factory.Factory, p *taskProgress) *lineViewer {
	nowhere := term.NewScreen(io.Discard, func() {})
	v := &lineViewer{Factory: f, p: p, streams: f.Stdout.IsTerminal(), stop: make(chan struct{})}
	out, side := f.Stdout, f.Stderr
	if !v.streams {
		out = nowhere
	}
	if !side.IsTerminal() && !f.Verbose {
		side = nowhere
	}
	v.lines = agentview.NewRenderer(out, side)
	v.lines.Verbose = f.Verbose
	if side.IsTerminal() {
		v.ticking.Go(v.tick)
	}
	return v
}

func (v *lineViewer) tick() {
	passes := time.NewTicker(tick)
	defer passes.Stop()
	for {
		select {
		case <-passes.C:
			v.lines.Tick()
		case <-v.stop:
			return
		}
	}
}

func (v *lineViewer) event(e agent.Event) {
	if ended, ok := e.(agent.CallEnded); ok && ended.Refusal != "" && v.p.needed != nil {
		return // what it has led to is said at the end
	}
	if decided, ok := e.(agent.Approval); ok && !decided.Allowed && decided.Call.Name != "" {
		return
	}
	v.lines.Event(e)
	if ended, ok := e.(agent.CallEnded); ok && !v.hinted && ended.Result.IsError && strings.Contains(agentview.ResultText(ended.Result), nobodyAsked) {
		v.hinted = true
		v.Warn("%s asks the user, and nobody is there: answer with --answer KEY=VALUE, or use dowel chat", toolname.Display(ended.Call.Name))
	}
}

// nobodyAsked is in the error of a call whose server wants to ask the user, and may not.
var nobodyAsked = fmt.Sprintf("(%d)", mcp.CodeMissingCapability)

func (v *lineViewer) end(error) {
	close(v.stop)
	v.ticking.Wait()
	v.lines.Idle()
	if !v.streams {
		v.WriteText(v.p.result())
	}
}
