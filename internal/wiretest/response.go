package wiretest

import (
	"encoding/json"
	"slices"
	"strconv"
)

func (c *Checker) response(r *report, m *message) {
	if m.id == "" {
		c.responseWithoutID(r, m)
		return
	}
	x := c.exchanges[r.from.peer()][m.id]
	if x == nil {
		revision := c.eraOf()
		if r.from == Client && isModern(revision) {
			r.add(Direction, "a client sends no responses in %s", revision)
		}
		r.add(ResponseID, "no request has the id %s", m.id[1:])
		r.addError(Schema, validator(revision).response("", m))
		return
	}
	r.method = x.method
	switch x.state {
	case answered:
		r.add(AfterEnd, "request %s is answered already", m.id[1:])
	case cancelled:
		r.add(AfterEnd, "request %s was cancelled", m.id[1:])
	}
	c.judge(r, m, x)
	x.end(answered)
}

func (c *Checker) responseWithoutID(r *report, m *message) {
	r.addError(Schema, validator(c.eraOf()).response("", m))
	if c.unreadable[r.from.peer()] == 0 || m.kind != failure {
		r.add(ResponseID, "no id, but every frame of the %s could be read", r.from.peer())
		return
	}
	c.unreadable[r.from.peer()]--
}

// judge holds a response against its request.
func (c *Checker) judge(r *report, m *message, x *exchange) {
	if x.method == "initialize" && isLegacy(x.revision) {
		c.negotiate(r, m, x)
	}
	r.addError(Schema, validator(x.revision).response(x.method, m))
	switch {
	case m.kind == failure:
		errorCode(r, m, x.revision)
	case isModern(x.revision):
		modernResult(r, m, x)
	default:
		legacyFields(r, m.result, "result")
		x.tokenLives = x.task && m.result["task"] != nil
	}
}

// negotiate takes the revision from the answer to initialize.
func (c *Checker) negotiate(r *report, m *message, x *exchange) {
	c.session.requested = ""
	if m.kind == failure {
		return
	}
	revision := text(m.result, "protocolVersion")
	if !isLegacy(revision) {
		r.add(Lifecycle, "initialize is answered with protocolVersion %q, which is not a legacy revision", revision)
		revision = x.revision
	}
	x.revision, c.session.revision = revision, revision
}

func modernResult(r *report, m *message, x *exchange) {
	switch kind, _ := m.result["resultType"].(string); {
	case kind == "complete":
		cacheHints(r, m, x)
	case kind == "input_required":
		inputRequired(r, m, x)
	case kind == "":
		r.add(ResultType, "result without resultType")
	case !slices.Contains(r.options.ResultTypes, kind):
		r.add(ResultType, "unknown resultType %q", kind)
	}
	if x.method == "subscriptions/listen" {
		listenResult(r, m, x)
	}
}

func cacheHints(r *report, m *message, x *exchange) {
	_, hasTTL := m.result["ttlMs"]
	_, hasScope := m.result["cacheScope"]
	if cacheable(x) && !(hasTTL && hasScope) {
		r.add(Cache, "result without ttlMs and cacheScope")
	}
}

// cacheable reads from the schema which results require the hints.
func cacheable(x *exchange) bool {
	names := validator(x.revision).names
	required, _ := object(names.all, names.result(x.method))["required"].([]any)
	return slices.Contains(required, any("ttlMs"))
}

func inputRequired(r *report, m *message, x *exchange) {
	switch x.method {
	case "tools/call", "prompts/get", "resources/read":
	default:
		r.add(ResultType, "this request must not be answered by input_required")
	}
	asks, hasAsks := m.result["inputRequests"]
	if _, hasState := m.result["requestState"]; !hasAsks && !hasState {
		r.add(ResultType, "input_required with neither inputRequests nor requestState")
	}
	_, hasTTL := m.result["ttlMs"]
	_, hasScope := m.result["cacheScope"]
	if hasTTL || hasScope {
		r.add(Cache, "input_required with caching hints")
	}
	for _, ask := range object(asks) {
		mayAsk(r, x.capabilities, text(ask, "method"), object(ask, "params"))
	}
}

func listenResult(r *report, m *message, x *exchange) {
	if !x.acknowledged {
		r.add(Subscription, "subscription ends before it is acknowledged")
	}
	if id, _ := metaMember(m.result, "subscriptionId"); idKey(id) != m.id {
		r.add(Subscription, "result does not carry its own id as subscription id")
	}
}

// errorCode judges codes of the range that JSON-RPC reserves.
func errorCode(r *report, m *message, revision string) {
	number, _ := object(m.value, "error")["code"].(json.Number)
	code, err := strconv.Atoi(number.String())
	if err != nil || code < -32768 || code > -32000 {
		return
	}
	_, defined := validator(revision).names.errors[number.String()]
	switch {
	case defined, code == -32700, code <= -32600 && code >= -32603:
	case isModern(revision):
		r.add(ErrorCode, "code %d is not defined in %s", code, revision)
	case code == -32042:
		r.add(ErrorCode, "code -32042 belongs to %s", latestLegacy)
	case code < -32099:
		r.add(ErrorCode, "code %d is reserved by JSON-RPC", code)
	}
}
