package wiretest

import (
	"encoding/json"
	"slices"
)

func (c *Checker) notification(r *report, m *message) {
	revision := c.notificationRevision(r, m)
	c.outgoing(r, m, revision)
	switch m.method {
	case "notifications/initialized":
		c.session.initialized = true
	case "notifications/cancelled":
		c.cancellation(r, m)
	case "notifications/progress":
		c.progress(r, m)
	case "notifications/message":
		if isModern(revision) {
			c.log(r, m)
		}
	}
	if isModern(revision) {
		c.subscription(r, m)
	}
}

// notificationRevision finds a notification's era by what it refers to: a
// subscription, a request, a request that asked for logs, or else the session.
func (c *Checker) notificationRevision(r *report, m *message) string {
	if _, ok := metaMember(m.params, "subscriptionId"); ok {
		return firstModern
	}
	switch m.method {
	case "notifications/subscriptions/acknowledged":
		return firstModern
	case "notifications/cancelled":
		if x, _ := c.cancels(r, m); x != nil {
			return x.revision
		}
	case "notifications/progress":
		if x := c.tokens[r.from.peer()][idKey(m.params["progressToken"])]; x != nil {
			return x.revision
		}
	}
	return c.eraOf()
}

// cancels finds the request that a cancellation means: one of the sender's
// own, or a client's subscription that the server tears down.
func (c *Checker) cancels(r *report, m *message) (x *exchange, own bool) {
	id := idKey(m.params["requestId"])
	x = c.exchanges[r.from][id]
	if r.from == Client || x != nil && x.state == open {
		return x, x != nil
	}
	if other := c.exchanges[Client][id]; other != nil && (x == nil || other.method == "subscriptions/listen") {
		return other, false
	}
	return x, x != nil
}

func (c *Checker) cancellation(r *report, m *message) {
	x, own := c.cancels(r, m)
	switch {
	case x == nil:
		r.add(Cancellation, "no request of the %s has this id", r.from)
	case !own && (isLegacy(x.revision) || x.method != "subscriptions/listen"):
		r.add(Cancellation, "a server cannot cancel the client's %s", x.method)
	case x.method == "initialize":
		r.add(Cancellation, "initialize cannot be cancelled")
	case x.task:
		r.add(Cancellation, "a task is cancelled by tasks/cancel")
	case x.state == cancelled:
		r.add(AfterEnd, "request was cancelled already")
	case own && x.state == answered: // the two crossed on their way
	default:
		x.end(cancelled)
	}
}

func (c *Checker) progress(r *report, m *message) {
	x := c.tokens[r.from.peer()][idKey(m.params["progressToken"])]
	if x == nil {
		r.add(Progress, "no request of the %s has this progress token", r.from.peer())
		return
	}
	if x.state != open && !x.tokenLives {
		r.add(AfterEnd, "progress of a request that has ended")
	}
	text, ok := m.params["progress"].(json.Number)
	if !ok {
		return
	}
	now := number(text)
	if x.progress != nil && now.Cmp(x.progress) <= 0 {
		r.add(Progress, "progress %s does not increase on %s", text, x.progress.Text('g', 10))
	}
	x.progress = now
}

// levels are those of RFC 5424, least severe first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// log checks a modern log message. It names no request, so any open one that
// asked for its level will do.
func (c *Checker) log(r *report, m *message) {
	level, _ := m.params["level"].(string)
	for _, x := range c.exchanges[Client] {
		asked := slices.Index(levels, x.logLevel)
		if x.state == open && asked >= 0 && slices.Index(levels, level) >= asked {
			return
		}
	}
	r.add(Log, "no open request asked for %q", level)
}

// filters maps change notifications to the member of a subscription's filter.
var filters = map[string]string{
	"notifications/tools/list_changed":     "toolsListChanged",
	"notifications/prompts/list_changed":   "promptsListChanged",
	"notifications/resources/list_changed": "resourcesListChanged",
	"notifications/resources/updated":      "resourceSubscriptions",
}

func (c *Checker) subscription(r *report, m *message) {
	const acknowledged = "notifications/subscriptions/acknowledged"
	id, carries := metaMember(m.params, "subscriptionId")
	filter, isChange := filters[m.method]
	switch {
	case m.method == "notifications/progress", m.method == "notifications/message":
		if carries {
			r.add(Subscription, "belongs to a request, yet carries a subscription id")
		}
		return
	case m.method == "notifications/cancelled":
		return
	case !carries:
		if isChange || m.method == acknowledged {
			r.add(Subscription, "no subscription id in _meta")
		}
		return
	}
	x := c.exchanges[Client][idKey(id)]
	switch {
	case x == nil || x.method != "subscriptions/listen":
		r.add(Subscription, "no subscriptions/listen has the id %v", id)
	case x.state != open:
		r.add(AfterEnd, "subscription %v has ended", id)
	case m.method == acknowledged:
		acknowledge(r, m, x)
	case !x.acknowledged:
		r.add(Subscription, "subscription %v is not acknowledged yet", id)
	case isChange && !wants(x.filter, filter):
		r.add(Subscription, "subscription %v has no %s", id, filter)
	}
}

// acknowledge narrows the filter to what the server agreed to.
func acknowledge(r *report, m *message, x *exchange) {
	if x.acknowledged {
		r.add(Subscription, "acknowledged again")
	}
	agreed := object(m.params, "notifications")
	for _, name := range filters {
		if wants(agreed, name) && !wants(x.filter, name) {
			r.add(Subscription, "%s is acknowledged, but was not asked for", name)
		}
	}
	x.acknowledged, x.filter = true, agreed
}

func wants(filter map[string]any, name string) bool {
	uris, _ := filter[name].([]any)
	return filter[name] == true || len(uris) > 0
}
