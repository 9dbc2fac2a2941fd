package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
)

// TicketLife is how long a ticket counts. IdleLife is how long a token counts without a request.
const (
	TicketLife = time.Minute
	IdleLife   = 12 * time.Hour
)

// maxTickets and maxSessions limit the memory. The oldest are dropped.
const (
	maxTickets  = 16
	maxSessions = 64
)

// digest stands for a ticket or token, so that comparing takes the same time for all wrong ones.
type digest [sha256.Size]byte

// logins holds the tickets that wait to be used, and the sessions of pages. The zero value is
// empty.
type logins struct {
	mu       sync.Mutex
	tickets  map[digest]time.Time // when they were made
	sessions map[digest]*session
}

// session is a page that is logged in. logins.mu guards it.
type session struct {
	used   time.Time
	ctx    context.Context // ends with the session
	cancel context.CancelFunc
}

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// newTicket returns a ticket.
func (l *logins) newTicket() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tickets == nil {
		l.tickets = map[digest]time.Time{}
	}
	for len(l.tickets) >= maxTickets {
		oldest := digest{}
		for d, made := range l.tickets {
			if at, ok := l.tickets[oldest]; !ok || made.Before(at) {
				oldest = d
			}
		}
		delete(l.tickets, oldest)
	}
	ticket := rand.Text()
	l.tickets[digestOf(ticket)] = time.Now()
	return ticket
}

// redeem exchanges a ticket for a token.
func (l *logins) redeem(ticket string) (token string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := digestOf(ticket)
	made, ok := l.tickets[d]
	delete(l.tickets, d)
	if !ok || time.Since(made) > TicketLife {
		return "", errors.New("this link was used already, or is older than a minute")
	}
	if l.sessions == nil {
		l.sessions = map[digest]*session{}
	}
	l.dropSessions()
	token = rand.Text() + rand.Text()
	s := &session{used: time.Now()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	l.sessions[digestOf(token)] = s
	return token, nil
}

// dropSessions ends the sessions that have expired, and the least used one if there are too many.
// l.mu is held.
func (l *logins) dropSessions() {
	var oldest digest
	for d, s := range l.sessions {
		if time.Since(s.used) > IdleLife {
			l.endSession(d)
			continue
		}
		if o := l.sessions[oldest]; o == nil || s.used.Before(o.used) {
			oldest = d
		}
	}
	if len(l.sessions) >= maxSessions {
		l.endSession(oldest)
	}
}

// endSession ends a session and its requests. l.mu is held.
func (l *logins) endSession(d digest) {
	if s := l.sessions[d]; s != nil {
		s.cancel()
		delete(l.sessions, d)
	}
}

// errLoggedOut is the error of a request without a valid token.
var errLoggedOut = errors.New("this page is not logged in")

// authorize returns the context of a request with a valid token, which ends with its session too.
// The caller must call end.
func (l *logins) authorize(r *http.Request) (ctx context.Context, end func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := digestOf(httpwire.BearerToken(r))
	s := l.sessions[d]
	if s == nil {
		return nil, nil, errLoggedOut
	}
	if time.Since(s.used) > IdleLife {
		l.endSession(d)
		return nil, nil, errLoggedOut
	}
	s.used = time.Now()
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

// revoke ends the session of a request.
func (l *logins) revoke(r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endSession(digestOf(httpwire.BearerToken(r)))
}
