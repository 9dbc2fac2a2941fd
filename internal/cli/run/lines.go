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

// lineViewer shows a run to a person. The answer goes to standard output: as it is written if that
// is a terminal, else at the end. Everything else goes to standard error if that is a terminal or
// the user asked for it with -v.
type lineViewer struct {
	*factory.Factory
	progress      *taskProgress
	renderer      *agentview.Renderer
	streamsAnswer bool // the answer appears as it is written
	hintShown     bool // the hint at --answer was shown
	stop          chan struct{}
	ticker        sync.WaitGroup
}

// tickInterval is the time between two updates of the status line.
const tickInterval = 200 * time.Millisecond

func newLineViewer(f *factory.Factory, p *taskProgress, hasSchema bool) *lineViewer {
	discard := term.NewScreen(io.Discard, func() {})
	v := &lineViewer{Factory: f, progress: p, streamsAnswer: f.Stdout.IsTerminal() && !hasSchema, stop: make(chan struct{})}
	out, side := f.Stdout, f.Stderr
	if !v.streamsAnswer {
		out = discard
	}
	if !side.IsTerminal() && !f.IsVerbose() {
		side = discard
	}
	v.renderer = agentview.NewRenderer(out, side)
	v.renderer.Excerpts, v.renderer.Verbose = f.IsVerbose(), f.Verbosity > 1
	if side.IsTerminal() {
		v.ticker.Go(v.runTicker)
	}
	return v
}

func (v *lineViewer) runTicker() {
	ticker := time.NewTicker(tickInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			v.renderer.Tick()
		case <-v.stop:
			return
		}
	}
}

// showEvent implements [viewer]. It leaves out refusals that the task's error reports.
func (v *lineViewer) showEvent(e agent.Event) {
	if ended, ok := e.(agent.CallEnded); ok && ended.Refusal != "" && v.progress.missingApproval != nil {
		return // the task's error reports it
	}
	if decided, ok := e.(agent.Approval); ok && !decided.Allowed && decided.Call.Name != "" && v.progress.mode != agent.ModeAsk {
		return
	}
	v.renderer.Event(e)
	if ended, ok := e.(agent.CallEnded); ok && !v.hintShown && ended.Result.IsError && strings.Contains(agentview.ResultText(ended.Result), missingCapabilityCode) {
		v.hintShown = true
		v.Warn("%s asks the user, and dowel run cannot: answer with --answer KEY=VALUE, or use dowel chat", toolname.Display(ended.Call.Name))
	}
}

// missingCapabilityCode is part of the error of a call that needs an answer of the user.
var missingCapabilityCode = fmt.Sprintf("(%d)", mcp.CodeMissingCapability)

// showEnd implements [viewer]. It writes the answer, unless it was shown as it was written.
func (v *lineViewer) showEnd(error) {
	close(v.stop)
	v.ticker.Wait()
	v.renderer.Idle()
	switch {
	case v.progress.value != nil:
		v.WriteText(string(v.progress.value))
	case !v.streamsAnswer:
		v.WriteText(v.progress.answerText())
	}
}
