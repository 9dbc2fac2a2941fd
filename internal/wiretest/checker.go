package wiretest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Checker follows one connection of either era, or of both in turn: the era of
// a request is told by its _meta, that of a response by its request, and the
// legacy revision by the answer to initialize. It remembers every id, so its
// memory grows with the connection. It is safe for concurrent use, but the
// order of the calls has to be the order of the frames.
type Checker struct {
	options Options

	mu        sync.Mutex
	exchanges [2]map[string]*exchange // by the requesting role, then by id
	tokens    [2]map[string]*exchange // by the requesting role, then by progress token
	// unreadable counts frames of each role that the peer may answer without an id.
	unreadable [2]int
	session    session
}

// session is the legacy side of a connection.
type session struct {
	revision     string // "" before there is an answer to initialize
	requested    string // by an initialize that is not answered yet
	initialized  bool
	capabilities map[string]any // of the client; nil if unknown
}

func (s *session) begun() bool { return s.revision != "" || s.requested != "" }

// current returns the revision of legacy frames.
func (s *session) current() string {
	switch {
	case s.revision != "":
		return s.revision
	case isLegacy(s.requested):
		return s.requested
	}
	return latestLegacy
}

// NewChecker returns a Checker of a connection that has not sent anything yet.
// It takes at most one Options and panics if Options.Revision is not a legacy one.
func NewChecker(options ...Options) *Checker {
	c := &Checker{}
	if len(options) > 0 {
		c.options = options[0]
	}
	if revision := c.options.Revision; revision != "" {
		if !isLegacy(revision) {
			panic(fmt.Sprintf("wiretest: Options.Revision %q is not a legacy revision", revision))
		}
		c.session = session{revision: revision, initialized: true}
	}
	for role := range c.exchanges {
		c.exchanges[role] = map[string]*exchange{}
		c.tokens[role] = map[string]*exchange{}
	}
	return c
}

// Frame takes the next frame on the connection and returns what is wrong with
// it, each error a *[Violation]; none for a good frame. The frame has to stay
// unchanged as long as the errors are in use.
func (c *Checker) Frame(from Role, frame []byte) []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &report{options: c.options, from: from, frame: frame}
	if bytes.ContainsAny(frame, "\r\n") {
		r.add(Framing, "frame holds a line break")
	}
	value, err := decode(frame)
	if err != nil {
		c.unreadable[from]++
		r.addError(Framing, err)
		return r.errs
	}
	if items, ok := value.([]any); ok {
		c.batch(r, items)
	} else {
		c.message(r, value)
	}
	return r.errs
}

// Abandon tells that the response stream of a request was closed, which is how
// Streamable HTTP cancels one in the modern era: nothing may follow for it.
// The id is JSON text.
func (c *Checker) Abandon(from Role, id []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, _ := decode(id)
	if x := c.exchanges[from][idKey(value)]; x != nil {
		x.end(cancelled)
	}
}

// Open returns the ids (JSON text of strings unquoted) of requests of a role
// that are neither answered nor cancelled, sorted: at the end of a test, those
// whose answer is missing.
func (c *Checker) Open(from Role) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for _, key := range slices.Sorted(maps.Keys(c.exchanges[from])) {
		if c.exchanges[from][key].state == open {
			ids = append(ids, key[1:])
		}
	}
	return ids
}

func (c *Checker) batch(r *report, items []any) {
	revision := c.session.current()
	if !c.session.begun() || revision != batching {
		r.add(Batching, "a batch outside of a %s session", batching)
		c.unreadable[r.from]++
	} else {
		r.addError(Batching, validator(revision).batch(items))
	}
	for _, item := range items {
		if text(item, "method") == "initialize" {
			r.add(Batching, "a batch holds initialize")
		}
		c.message(r, item)
	}
}

func (c *Checker) message(r *report, value any) {
	m, err := parseMessage(value)
	if err != nil {
		c.unreadable[r.from]++
		r.addError(Framing, err)
		return
	}
	r.method = m.method
	switch m.kind {
	case request:
		c.request(r, m)
	case notification:
		c.notification(r, m)
	default:
		c.response(r, m)
	}
}

// outgoing runs the checks that requests and notifications share.
func (c *Checker) outgoing(r *report, m *message, revision string) {
	v := validator(revision)
	r.addError(Direction, v.direction(m, r.from))
	r.addError(Schema, v.outgoing(m))
}

// validator returns the Validator of a revision that is known to exist.
func validator(revision string) *Validator {
	v, err := For(revision)
	if err != nil {
		panic(err) // the embedded schemas are broken
	}
	return v
}

// eraOf returns the revision of a frame that nothing but the connection tells:
// the legacy session's if there is one.
func (c *Checker) eraOf() string {
	if c.session.begun() {
		return c.session.current()
	}
	return firstModern
}

const meta = "io.modelcontextprotocol/"

func metaMember(members map[string]any, name string) (any, bool) {
	value, ok := object(members, "_meta")[meta+name]
	return value, ok
}

// legacyFields checks params or a result of a legacy message.
func legacyFields(r *report, members map[string]any, what string) {
	var found []string
	for _, name := range []string{"resultType", "ttlMs", "cacheScope", "inputRequests", "inputResponses", "requestState"} {
		if _, ok := members[name]; ok {
			found = append(found, name)
		}
	}
	if found != nil {
		r.add(Legacy, "legacy %s with %s", what, strings.Join(found, ", "))
	}
}
