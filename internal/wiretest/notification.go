package wiretest

import (
	"encoding/json"
	"slices"
)

func (c *Checker) checkNotification(r *report, m *message) {
	revision := c.notificationRevision(r, m)
	c.checkOutgoing(r, m, revision)
	switch m.method {
	case "notifications/initialized":
		c.session.initialized = true
	case "notifications/cancelled":
		c.checkCancellation(r, m)
	case "notifications/progress":
		c.checkProgress(r, m)
	case "notifications/message":
		if isModern(revision) {
			c.checkLog(r, m)
		}
	}
	if isModern(revision) {
		c.checkSubscription(r, m)
	}
}

// notificationRevision finds a notification's era by its subscription, the request that it belongs
// to, or else the session.
func (c *Checker) notificationRevision(r *report, m *message) string {
	if _, ok := metaMember(m.params, "subscriptionId"); ok {
		return firstModern
	}
	switch m.method {
	case "notifications/subscriptions/acknowledged":
		return firstModern
	case "notifications/cancelled":
		if x, _ := c.findCancelled(r, m); x != nil {
			return x.revision
		}
	case "notifications/progress":
		if x := c.tokens[r.from.peer()][idKey(m.params["progressToken"])]; x != nil {
			return x.revision
		}
	}
	return c.eraOf()
}

// findCancelled finds the request that a cancellation means: one of the sender's
// own, or a client's subscription that the server tears down.
func (c *Checker) findCancelled(r *report, m *message) (x *exchange, own bool) {
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

func (c *Checker) checkCancellation(r *report, m *message) {
	x, own := c.findCancelled(r, m)
	switch {
	case x == nil:
		r.addViolation(Cancellation, "no request of the %s has this id", r.from)
	case !own && (isLegacy(x.revision) || x.method != "subscriptions/listen"):
		r.addViolation(Cancellation, "a server cannot cancel the client's %s", x.method)
	case x.method == "initialize":
		r.addViolation(Cancellation, "initialize cannot be cancelled")
	case x.task:
		r.addViolation(Cancellation, "a task is cancelled by tasks/cancel")
	case x.state == cancelled:
		r.addViolation(AfterEnd, "request was cancelled already")
	case own && x.state == answered: // the two crossed on their way
	default:
		x.endAs(cancelled)
	}
}

func (c *Checker) checkProgress(r *report, m *message) {
	x := c.tokens[r.from.peer()][idKey(m.params["progressToken"])]
	if x == nil {
		r.addViolation(Progress, "no request of the %s has this progress token", r.from.peer())
		return
	}
	if x.state != open && !x.tokenLives {
		r.addViolation(AfterEnd, "progress of a request that has ended")
	}
	text, ok := m.params["progress"].(json.Number)
	if !ok {
		return
	}
	now := parseNumber(text)
	if x.progress != nil && now.Cmp(x.progress) <= 0 {
		r.addViolation(Progress, "progress %s does not increase on %s", text, x.progress.Text('g', 10))
	}
	x.progress = now
}

// levels are the levels of RFC 5424, least severe first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// checkLog checks a modern log message. It names no request, so any open one that
// asked for its level will do.
func (c *Checker) checkLog(r *report, m *message) {
	level, _ := m.params["level"].(string)
	for _, x := range c.exchanges[Client] {
		asked := slices.Index(levels, x.logLevel)
		if x.state == open && asked >= 0 && slices.Index(levels, level) >= asked {
			return
		}
	}
	r.addViolation(Log, "no open request asked for %q", level)
}

// filters maps change notifications to the member of a subscription's filter.
var filters = map[string]string{
	"notifications/tools/list_changed":     "toolsListChanged",
	"notifications/prompts/list_changed":   "promptsListChanged",
	"notifications/resources/list_changed": "resourcesListChanged",
	"notifications/resources/updated":      "resourceSubscriptions",
}

func (c *Checker) checkSubscription(r *report, m *message) {
	const acknowledged = "notifications/subscriptions/acknowledged"
	id, carries := metaMember(m.params, "subscriptionId")
	filter, isChange := filters[m.method]
	switch {
	case m.method == "notifications/progress", m.method == "notifications/message":
		if carries {
			r.addViolation(Subscription, "belongs to a request, yet carries a subscription id")
		}
		return
	case m.method == "notifications/cancelled":
		return
	case !carries:
		if isChange || m.method == acknowledged {
			r.addViolation(Subscription, "no subscription id in _meta")
		}
		return
	}
	x := c.exchanges[Client][idKey(id)]
	switch {
	case x == nil || x.method != "subscriptions/listen":
		r.addViolation(Subscription, "no subscriptions/listen has the id %v", id)
	case x.state != open:
		r.addViolation(AfterEnd, "subscription %v has ended", id)
	case m.method == acknowledged:
		checkAcknowledgment(r, m, x)
	case !x.acknowledged:
		r.addViolation(Subscription, "subscription %v is not acknowledged yet", id)
	case isChange && !wants(x.filter, filter):
		r.addViolation(Subscription, "subscription %v has no %s", id, filter)
	}
}

// checkAcknowledgment narrows the filter to the notifications that the server acknowledged.
func checkAcknowledgment(r *report, m *message, x *exchange) {
	if x.acknowledged {
		r.addViolation(Subscription, "acknowledged again")
	}
	agreed := object(m.params, "notifications")
	for _, name := range filters {
		if wants(agreed, name) && !wants(x.filter, name) {
			r.addViolation(Subscription, "%s is acknowledged, but was not asked for", name)
		}
	}
	x.acknowledged, x.filter = true, agreed
}

func wants(filter map[string]any, name string) bool {
	uris, _ := filter[name].([]any)
	return filter[name] == true || len(uris) > 0
}
