package doctor

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/transport"
)

// walk is one examination.
type walk struct {
	evidence
	ctx     context.Context
	yield   func(Step) bool
	last    time.Time // when the step before ended
	seen    map[string]bool
	options client.Options
	network *network // nil unless the target is a URL
	strays  Strays
	stderr  tail
	again   atomic.Bool   // a second process was started
	begun   chan struct{} // holds a token once the first frame goes out
}

func newWalk(ctx context.Context, p Patient, yield func(Step) bool) *walk {
	w := &walk{evidence: newEvidence(nil, p), ctx: ctx, yield: yield, last: time.Now(), seen: map[string]bool{}, begun: make(chan struct{}, 1)}
	w.strays.again = func() {
		w.stderr.reset()
		w.again.Store(true)
	}
	o := p.Options
	o.Name = cmp.Or(p.Name, o.Name)
	o.OnState, o.OnLog, o.Notifications = nil, nil, nil
	o.Logger, o.Wire.Verdicts = slog.New(slog.DiscardHandler), new(transport.Verdicts)
	o.Restart = client.Restart{Max: -1}
	o.Wire.Tap = w.tap(o.Wire.Tap)
	w.options = o
	return w
}

// tap notices the first frame and what is no message.
func (w *walk) tap(next transport.Tap) transport.Tap {
	strays := w.strays.Tap(next)
	return func(f transport.Frame) {
		select {
		case w.begun <- struct{}{}:
		default:
		}
		strays(f)
	}
}

// report yields a step; it reports whether to go on.
func (w *walk) report(s Step) bool {
	now := time.Now()
	if s.Took == 0 {
		s.Took = now.Sub(w.last)
	}
	w.last, w.seen[s.Name] = now, true
	s.Detail, s.Advice = w.mask.text(s.Detail), w.mask.text(s.Advice)
	if s.Err != nil {
		s.Err = &maskedError{w.mask.text(s.Err.Error()), s.Err}
	}
	return w.yield(s) && s.Status != Failed
}

// fail reports the step that an error belongs to.
func (w *walk) fail(err error) {
	w.err = err
	w.stray = w.strays.printed()
	w.said = w.stderr.lines()
	w.early = !w.running.IsZero() && !w.seen[stepFirst]
	d := w.diagnose()
	w.report(Step{Name: d.Step, Status: Failed, Detail: d.Summary, Advice: d.Advice, Err: err, Diagnosis: &d})
}

// maskedError hides the secrets of an error's text.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }

// dialing is a dial in a goroutine of its own.
type dialing struct {
	cancel context.CancelFunc
	done   chan struct{} // closed once client and err are set
	client *client.Client
	err    error
}

func (w *walk) dial(target any) *dialing {
	ctx, cancel := context.WithCancel(w.ctx)
	d := &dialing{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(d.done)
		d.client, d.err = client.Dial(ctx, target, &w.options)
	}()
	return d
}

// end waits for the dial and closes what came of it, which may have been closed before.
func (d *dialing) end() {
	d.cancel()
	<-d.done
	if d.client != nil {
		_ = d.client.Close()
	}
}

// definition looks at what there is to dial.
func (w *walk) definition() bool {
	if f, ok := undialable(&w.evidence); ok {
		w.fail(errors.New(f.summary))
		return false
	}
	return w.report(Step{Name: stepDefinition, Status: OK, Detail: w.describe()})
}
