package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// lineViewer shows a task to people: the answer on standard output, as it comes where that is a terminal, and what happens on
// standard error, where somebody reads it.
type lineViewer struct {
	*app
	p       *performance
	lines   *renderer
	streams bool // what the model says is shown at once
	hinted  bool // that --answer would help
	stop    chan struct{}
	ticking sync.WaitGroup
}

// tick is how often what stands on the terminal is looked at again.
const tick = 200 * time.Millisecond

func newLineViewer(a *app, p *performance) *lineViewer {
	nowhere := newScreen(io.Discard, func() {})
	v := &lineViewer{app: a, p: p, streams: a.stdout.isTerminal(), stop: make(chan struct{})}
	out, side := a.stdout, a.stderr
	if !v.streams {
		out = nowhere
	}
	if !side.isTerminal() && !a.verbose {
		side = nowhere
	}
	v.lines = newRenderer(out, side)
	v.lines.verbose = a.verbose
	if side.isTerminal() {
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
			v.lines.tick()
		case <-v.stop:
			return
		}
	}
}

func (v *lineViewer) event(e agent.Event) {
	if ended, ok := e.(agent.CallEnded); ok && ended.Refusal != "" && v.p.needed != nil {
		return // what it has led to is said at the end
	}
	if decided, ok := e.(agent.Decided); ok && !decided.Allowed && decided.Call.Name != "" {
		return
	}
	v.lines.event(e)
	if ended, ok := e.(agent.CallEnded); ok && !v.hinted && ended.Result.IsError && strings.Contains(resultText(ended.Result), nobodyAsked) {
		v.hinted = true
		v.warn("%s asks the user, and nobody is there: answer with --answer KEY=VALUE, or use dowel chat", spoken(ended.Call.Name))
	}
}

// nobodyAsked is in the error of a call whose server wants to ask the user, and may not.
var nobodyAsked = fmt.Sprintf("(%d)", mcp.CodeMissingCapability)

func (v *lineViewer) end(error) {
	close(v.stop)
	v.ticking.Wait()
	v.lines.idle()
	if !v.streams {
		v.text(v.p.result())
	}
}
