package chat

import (
	"context"
	"sync"
	"time"
)

const (
	// lookupPatience is how long Tab waits for a server. A later answer completes the line when it
	// arrives, unless the user has typed on.
	lookupPatience = 100 * time.Millisecond
	// lookupTimeout limits how long a server may take.
	lookupTimeout = 10 * time.Second
	// lookupLife is how long an answer is used before the server is asked again.
	lookupLife = 5 * time.Second
	// maxLookups limits the answers that are kept.
	maxLookups = 200
)

// lookups asks servers for completions beside the keyboard, which must not wait for a slow server,
// and keeps their answers.
type lookups struct {
	ctx     context.Context
	start   func(func()) // runs a function on a goroutine that the conversation waits for
	arrived func()       // called when an answer has arrived that wantAnswers waits for

	mu      sync.Mutex // guards the fields below
	entries map[string]*lookup
}

// lookup is a question to a server, and its last answer.
type lookup struct {
	answer any
	at     time.Time     // when the answer arrived; zero before
	done   chan struct{} // closed when the answer arrives; nil if the server is not being asked
	unseen bool          // findAnswer did not wait for the answer
	wanted bool          // arrived is called when it comes
}

// findAnswer returns the answer to the question with that key. ask asks the server for it. Without
// an answer in time, findAnswer returns the last one, or the zero T. After an error the answer is
// the zero T, since Tab cannot show errors.
func findAnswer[T any](l *lookups, key string, ask func(ctx context.Context) (T, error)) T {
	e := l.startLookup(key, func(ctx context.Context) any {
		answer, err := ask(ctx)
		if err != nil {
			var none T
			return none
		}
		return answer
	})
	l.mu.Lock()
	done := e.done
	l.mu.Unlock()
	if done != nil {
		timer := time.NewTimer(lookupPatience)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.unseen = e.done != nil
	answer, _ := e.answer.(T)
	return answer
}

// startLookup asks the server unless it is being asked, or the last answer is recent.
func (l *lookups) startLookup(key string, ask func(ctx context.Context) any) *lookup {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[key]
	if e == nil {
		if l.entries == nil || len(l.entries) == maxLookups {
			l.entries = map[string]*lookup{}
		}
		e = &lookup{}
		l.entries[key] = e
	}
	if e.done != nil || !e.at.IsZero() && time.Since(e.at) < lookupLife {
		return e
	}
	e.done = make(chan struct{})
	l.start(func() {
		ctx, cancel := context.WithTimeout(l.ctx, lookupTimeout)
		defer cancel()
		l.finishLookup(e, ask(ctx))
	})
	return e
}

// finishLookup stores an answer.
func (l *lookups) finishLookup(e *lookup, answer any) {
	l.mu.Lock()
	e.answer, e.at = answer, time.Now()
	close(e.done)
	e.done = nil
	wanted := e.wanted
	e.wanted, e.unseen = false, e.unseen && !wanted
	l.mu.Unlock()
	if wanted && l.ctx.Err() == nil {
		l.arrived()
	}
}

// wantAnswers calls arrived when answers come for which findAnswer did not wait. With false it
// stops that, because the line is completed already.
func (l *lookups) wantAnswers(wanted bool) {
	l.mu.Lock()
	came := false
	for _, e := range l.entries {
		e.wanted = wanted && e.done != nil && e.unseen
		if wanted && e.done == nil && e.unseen {
			came, e.unseen = true, false
		}
	}
	l.mu.Unlock()
	if came {
		l.arrived()
	}
}
