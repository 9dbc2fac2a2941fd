package sessionlog

import (
	"sync"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/session"
)

// requestQueue holds requests to the model until the goroutine of the conversation stores them. It
// is safe for concurrent use: servers may use the model while a tool runs.
type requestQueue struct {
	mu  sync.Mutex
	all []agent.Conversation
}

// AddRequest takes a request to the model. The next event of the run stores it.
func (l *Log) AddRequest(c agent.Conversation) {
	l.requests.mu.Lock()
	defer l.requests.mu.Unlock()
	l.requests.all = append(l.requests.all, c)
}

// take returns the requests since its last call.
func (q *requestQueue) take() []agent.Conversation {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.all
	q.all = nil
	return all
}

// storeRequests stores the requests to the model since its last call.
func (l *Log) storeRequests() {
	for _, request := range l.requests.take() {
		l.update(func(s *session.Session) error { return s.Prompt(request) })
	}
}
