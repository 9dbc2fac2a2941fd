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
	progress      *taskProgress
	renderer      *agentview.Renderer
	streamsAnswer bool // what the model says is shown at once
	hintShown     bool // that --answer would help
	stop          chan struct{}
	ticker        sync.WaitGroup
}

// tickInterval is how often what stands on the terminal is looked at again.
const tickInterval = 200 * time.Millisecond

func newLineViewer(f *factory.Factory, p *taskProgress) *lineViewer {
	nowhere := term.NewScreen(io.Discard, func() {})
	v := &lineViewer{Factory: f, progress: p, streamsAnswer: f.Stdout.IsTerminal(), stop: make(chan struct{})}
	out, side := f.Stdout, f.Stderr
	if !v.streamsAnswer {
		out = nowhere
	}
	if !side.IsTerminal() && !f.Verbose {
		side = nowhere
	}
	v.renderer = agentview.NewRenderer(out, side)
	v.renderer.Verbose = f.Verbose
	if side.IsTerminal() {
		v.ticker.Go(v.runTicker)
	}
	return v
}

func (v *lineViewer) runTicker() {
	passes := time.NewTicker(tickInterval)
	defer passes.Stop()
	for {
		select {
		case <-passes.C:
			v.renderer.Tick()
		case <-v.stop:
			return
		}
	}
}

func (v *lineViewer) showEvent(e agent.Event) {
	if ended, ok := e.(agent.CallEnded); ok && ended.Refusal != "" && v.progress.missingApproval != nil {
		return // what it has led to is said at the end
	}
	if decided, ok := e.(agent.Approval); ok && !decided.Allowed && decided.Call.Name != "" {
		return
	}
	v.renderer.Event(e)
	if ended, ok := e.(agent.CallEnded); ok && !v.hintShown && ended.Result.IsError && strings.Contains(agentview.ResultText(ended.Result), missingCapabilityCode) {
		v.hintShown = true
		v.Warn("%s asks the user, and nobody is there: answer with --answer KEY=VALUE, or use dowel chat", toolname.Display(ended.Call.Name))
	}
}

// missingCapabilityCode is in the error of a call whose server wants to ask the user, and may not.
var missingCapabilityCode = fmt.Sprintf("(%d)", mcp.CodeMissingCapability)

func (v *lineViewer) showEnd(error) {
	close(v.stop)
	v.ticker.Wait()
	v.renderer.Idle()
	if !v.streamsAnswer {
		v.WriteText(v.progress.answerText())
	}
}
