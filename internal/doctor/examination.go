package doctor

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/process"
	"github.com/dowel-mcp/dowel/transport"
)

// examination is the state of one call of [Examine].
type examination struct {
	evidence
	ctx          context.Context
	yield        func(Step) bool
	lastStepEnd  time.Time // when the previous step ended
	reported     map[string]bool
	options      client.Options
	startWatch   time.Duration // for which a started process is watched
	network      *networkTrace // nil unless the target is a URL
	stdout       StdoutTail
	stderr       stderrTail
	wasRestarted atomic.Bool   // a second process was started
	firstFrame   chan struct{} // receives a token when the first frame is sent
}

// newExamination prepares an examination. Its options are a copy of the server's without callbacks,
// logger, verdicts and restarts.
func newExamination(ctx context.Context, p Server, yield func(Step) bool) *examination {
	w := &examination{evidence: newEvidence(nil, p), ctx: ctx, yield: yield, lastStepEnd: time.Now(), reported: map[string]bool{}, firstFrame: make(chan struct{}, 1)}
	w.stdout.onRestart = func() {
		w.stderr.reset()
		w.wasRestarted.Store(true)
	}
	o := p.Options
	o.Name = cmp.Or(p.Name, o.Name)
	o.OnState, o.OnLog, o.OnNotification = nil, nil, nil
	o.Logger, o.Wire.Verdicts = slog.New(slog.DiscardHandler), new(transport.Verdicts)
	o.Restart = client.Restart{Max: -1}
	o.Wire.Tap = w.wrapTap(o.Wire.Tap)
	w.options = o
	return w
}

// wrapTap returns a tap that reports the first frame and collects lines that are not messages.
func (w *examination) wrapTap(next transport.Tap) transport.Tap {
	collect := w.stdout.Tap(next)
	return func(f transport.Frame) {
		select {
		case w.firstFrame <- struct{}{}:
		default:
		}
		collect(f)
	}
}

// reportStep yields a step. It returns false if the examination must stop.
func (w *examination) reportStep(s Step) bool {
	now := time.Now()
	if s.Took == 0 {
		s.Took = now.Sub(w.lastStepEnd)
	}
	w.lastStepEnd, w.reported[s.Name] = now, true
	s.Detail, s.Advice = w.mask.maskText(s.Detail), w.mask.maskText(s.Advice)
	if s.Err != nil {
		s.Err = &maskedError{w.mask.maskText(s.Err.Error()), s.Err}
	}
	return w.yield(s) && s.Status != Failed
}

// reportFailure reports err as a failure of the step in which its cause lies.
func (w *examination) reportFailure(err error) {
	w.err = err
	w.stdoutLines = w.stdout.failedLines()
	w.stderrLines = w.stderr.lastLines()
	w.diedEarly = !w.startedAt.IsZero() && !w.reported[stepFirst]
	d := w.buildDiagnosis()
	w.reportStep(Step{Name: d.Step, Status: Failed, Detail: d.Summary, Advice: d.Advice, Err: err, Diagnosis: &d})
}

// maskedError replaces an error's text by one without secrets.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }

// pendingDial is a dial that runs in its own goroutine.
type pendingDial struct {
	cancel context.CancelFunc
	done   chan struct{} // closed once client and err are set
	client *client.Client
	err    error
}

// startDial dials target in a goroutine.
func (w *examination) startDial(target any) *pendingDial {
	ctx, cancel := context.WithCancel(w.ctx)
	d := &pendingDial{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(d.done)
		d.client, d.err = client.Dial(ctx, target, &w.options)
	}()
	return d
}

// closeDial waits for the dial to return and closes the client if there is one. Closing twice does
// no harm.
func (d *pendingDial) closeDial() {
	d.cancel()
	<-d.done
	process.AwaitEnd(d.err)
	if d.client != nil {
		_ = d.client.Close()
	}
}

// checkDefinition checks the target itself, before anything is started.
func (w *examination) checkDefinition() bool {
	if f, ok := findBadDefinition(&w.evidence); ok {
		w.reportFailure(errors.New(f.summary))
		return false
	}
	return w.reportStep(Step{Name: stepDefinition, Status: OK, Detail: w.describeTarget()})
}
