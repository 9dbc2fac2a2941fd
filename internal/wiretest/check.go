package wiretest

import (
	"fmt"
	"slices"
)

// Check names one rule of a [Checker]. Each is on by default; a test whose peer misbehaves on
// purpose switches it off.
type Check string

const (
	// Framing: a frame is one JSON value in UTF-8 without line breaks and without duplicate names,
	// and is a request, notification or response.
	Framing Check = "framing"
	// Schema: a message matches its revision's schema.json. A message that breaks one of the rules
	// below may also break this one; switch off both then.
	Schema Check = "schema"
	// Direction: only the role that a method is defined for sends it; a modern
	// server sends no requests and a modern client no responses.
	Direction Check = "direction"
	// Batching: batches are sent in 2025-03-26 only, are not empty, and hold no initialize.
	Batching Check = "batching"
	// Meta: a modern request carries its protocol version and client capabilities in _meta.
	Meta Check = "meta"
	// Lifecycle: a legacy session negotiates a legacy revision once, and carries
	// only pings (and, from the server, log messages) before it is initialized.
	Lifecycle Check = "lifecycle"
	// RequestID: an id is not used again in a legacy session, nor while it is
	// open in the modern era; a progress token not while it is active.
	RequestID Check = "request-id"
	// ResponseID: a response has the id of a request that the peer sent. Only an error response to
	// a frame that could not be read has no id.
	ResponseID Check = "response-id"
	// AfterEnd: nothing is sent for a request after its response or cancellation. Pass frames in
	// the order in which the server saw them: a response that crosses a cancellation is allowed.
	AfterEnd Check = "after-end"
	// Cancellation: only requests of the same direction are cancelled, never
	// initialize, and by a modern server only subscriptions/listen.
	Cancellation Check = "cancellation"
	// Progress: a token belongs to a request of the peer, and its progress strictly increases.
	Progress Check = "progress"
	// Log: a modern log message follows a request that asked for that level.
	Log Check = "log"
	// Subscription: a modern change notification carries the id of an open subscriptions/listen
	// that asked for it, after its acknowledgment. Other notifications carry no subscription id.
	Subscription Check = "subscription"
	// ResultType: a modern result is complete, one of Options.ResultTypes, or input_required with
	// requests or a state, for a method that allows it.
	ResultType Check = "result-type"
	// Cache: a complete modern result of a cacheable method carries ttlMs and
	// cacheScope, an interim one neither.
	Cache Check = "cache"
	// Legacy: no legacy message carries resultType, ttlMs, cacheScope,
	// inputRequests, inputResponses or requestState.
	Legacy Check = "legacy"
	// Capability: a client receives only requests for capabilities that it declared.
	Capability Check = "capability"
	// ErrorCode: the modern wire carries none of the retired codes (-32002,
	// -32042) and, of the range -32768…-32000, only codes that JSON-RPC or MCP
	// define; -32042 belongs to 2025-11-25 alone.
	ErrorCode Check = "error-code"
)

// Options of a [Checker]. The zero value checks everything.
type Options struct {
	Off       []Check // not checked on any frame
	OffClient []Check // not checked on frames of the client
	OffServer []Check // not checked on frames of the server

	// Revision is the legacy revision of frames before any initialize, for
	// connections that are not seen from their beginning. Default: none.
	Revision string
	// ResultTypes are allowed values of resultType that extensions define.
	ResultTypes []string
}

// allChecks are the checks that [Options] can switch off.
var allChecks = []Check{
	Framing, Schema, Direction, Batching, Meta, Lifecycle, RequestID, ResponseID, AfterEnd, Cancellation,
	Progress, Log, Subscription, ResultType, Cache, Legacy, Capability, ErrorCode,
}

// Validate reports the first check that does not exist, or a revision that is not a legacy one.
func (o Options) Validate() error {
	for _, check := range slices.Concat(o.Off, o.OffClient, o.OffServer) {
		if !slices.Contains(allChecks, check) {
			return fmt.Errorf("unknown check %q: want one of %v", check, allChecks)
		}
	}
	if o.Revision != "" && !isLegacy(o.Revision) {
		return fmt.Errorf("revision %q is not a legacy revision", o.Revision)
	}
	return nil
}

func (o Options) isOff(check Check, from Role) bool {
	mine := o.OffClient
	if from == Server {
		mine = o.OffServer
	}
	return slices.Contains(o.Off, check) || slices.Contains(mine, check)
}

// Violation is one broken rule; the errors of [Checker.Frame] are *Violation.
type Violation struct {
	Check  Check
	From   Role
	Method string // of the message, or of the request that it answers; "" if unknown
	Detail string
	Frame  []byte
}

// Error names the rule, the role that broke it and the fault, with the beginning of the frame.
func (v *Violation) Error() string {
	const most = 300
	frame, more := v.Frame, ""
	if len(frame) > most {
		frame, more = frame[:most], "…"
	}
	sender := v.From.String()
	if v.Method != "" {
		sender += " " + v.Method
	}
	return fmt.Sprintf("%s: %s: %s in %q%s", v.Check, sender, v.Detail, frame, more)
}

// report collects the violations of one frame.
type report struct {
	options Options
	from    Role
	frame   []byte
	method  string
	errs    []error
}

func (r *report) addViolation(check Check, format string, args ...any) {
	if r.options.isOff(check, r.from) {
		return
	}
	r.errs = append(r.errs, &Violation{
		Check: check, From: r.from, Method: r.method, Frame: r.frame,
		Detail: fmt.Sprintf(format, args...),
	})
}

func (r *report) addError(check Check, err error) {
	if err != nil {
		r.addViolation(check, "%v", err)
	}
}
