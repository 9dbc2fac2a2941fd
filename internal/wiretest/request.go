package wiretest

import (
	"math/big"
	"strings"
)

type state int

const (
	open state = iota
	answered
	cancelled
)

// exchange is a request and what has become of it.
type exchange struct {
	method       string
	revision     string
	state        state
	capabilities map[string]any // the client's for this request; nil if unknown
	logLevel     string
	task         bool // asked to run as a task
	progress     *big.Float
	tokenLives   bool // a task goes on after its response
	filter       map[string]any
	acknowledged bool
}

func (x *exchange) end(s state) {
	if x.state == open || s == cancelled {
		x.state = s
	}
}

func (c *Checker) request(r *report, m *message) {
	revision := c.requestRevision(r, m)
	c.outgoing(r, m, revision)
	if isModern(revision) {
		modernRequest(r, m)
	} else {
		c.legacyRequest(r, m)
	}
	x := &exchange{
		method:       m.method,
		revision:     revision,
		capabilities: c.session.capabilities,
		task:         revision == latestLegacy && m.params["task"] != nil,
	}
	if isModern(revision) {
		declared, _ := metaMember(m.params, "clientCapabilities")
		x.capabilities = object(declared)
		level, _ := metaMember(m.params, "logLevel")
		x.logLevel, _ = level.(string)
		x.filter = object(m.params, "notifications")
	}
	c.remember(r, m, x)
}

// requestRevision finds a request's era: initialize and the life of a legacy
// session make it legacy, a protocol version in _meta makes it modern, and so
// does having neither, for that is what breaks the fewest further rules.
func (c *Checker) requestRevision(r *report, m *message) string {
	if r.from == Server {
		return c.eraOf()
	}
	version, stated := metaMember(m.params, "protocolVersion")
	name, _ := version.(string)
	switch {
	case stated && isModern(name):
		return name
	case stated:
		return firstModern // a version nobody knows, to be refused by the server
	case m.method == "initialize":
		if requested := text(m.params, "protocolVersion"); isLegacy(requested) {
			return requested
		}
		return latestLegacy
	case m.method == "ping" && !c.session.begun() && len(c.exchanges[Client]) == 0:
		return latestLegacy // which needs no handshake, and is of that era only
	}
	return c.eraOf()
}

func modernRequest(r *report, m *message) {
	var missing []string
	for _, name := range []string{"protocolVersion", "clientCapabilities"} {
		if _, ok := metaMember(m.params, name); !ok {
			missing = append(missing, meta+name)
		}
	}
	if missing != nil && r.from == Client {
		r.add(Meta, "a request without initialize before it, and without %s in _meta", strings.Join(missing, " and "))
	}
}

func (c *Checker) legacyRequest(r *report, m *message) {
	legacyFields(r, m.params, "request")
	s := &c.session
	switch {
	case m.method == "initialize":
		if s.begun() && c.options.Revision == "" {
			r.add(Lifecycle, "initialize again")
		}
		s.requested = text(m.params, "protocolVersion")
		if s.requested == "" {
			s.requested = latestLegacy
		}
		s.capabilities = object(m.params, "capabilities")
	case m.method == "ping":
	case r.from == Client && s.revision == "":
		r.add(Lifecycle, "a request before initialize was answered")
	case r.from == Server && !s.initialized:
		r.add(Lifecycle, "a request before notifications/initialized")
	}
	if r.from == Server {
		mayAsk(r, s.capabilities, m.method, m.params)
	}
}

// remember opens an exchange. Ids of a legacy session are never used again.
func (c *Checker) remember(r *report, m *message, x *exchange) {
	if m.id == "" {
		c.unreadable[r.from]++ // the schema has said what is wrong with it
		return
	}
	old := c.exchanges[r.from][m.id]
	if old != nil && (old.state == open || isLegacy(x.revision) && isLegacy(old.revision)) {
		r.add(RequestID, "id %s is used again", m.id[1:])
	}
	c.exchanges[r.from][m.id] = x
	token := idKey(object(m.params, "_meta")["progressToken"])
	if token == "" {
		return
	}
	if old := c.tokens[r.from][token]; old != nil && (old.state == open || old.tokenLives) {
		r.add(RequestID, "progress token %s is active already", token[1:])
	}
	c.tokens[r.from][token] = x
}

// mayAsk checks that the client declared what a request of the server needs.
// Capabilities that were not seen are not judged.
func mayAsk(r *report, declared map[string]any, method string, params map[string]any) {
	if declared == nil {
		return
	}
	need := ""
	switch method {
	case "roots/list":
		need = "roots"
	case "sampling/createMessage":
		need = "sampling"
		if params["tools"] != nil || params["toolChoice"] != nil {
			need = "sampling.tools"
		}
	case "elicitation/create":
		need = elicitationNeed(declared, params)
	default:
		return
	}
	if object(declared, strings.Split(need, ".")...) == nil {
		r.add(Capability, "%s needs the client's capability %s", method, need)
	}
}

// elicitationNeed knows that {} declares the form mode.
func elicitationNeed(declared, params map[string]any) string {
	if params["mode"] == "url" {
		return "elicitation.url"
	}
	if len(object(declared, "elicitation")) > 0 {
		return "elicitation.form"
	}
	return "elicitation"
}
