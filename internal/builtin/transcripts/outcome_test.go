package transcripts

import (
	"encoding/json"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// tally holds the features that transcripts cover: methods with their outcomes, and members with
// the place where they are sent.
type tally struct {
	outcomes map[string]bool // "tools/call: ok"
	members  map[string]bool // "tools/list: icons"
}

// message is a line, or an element of a batch.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  params          `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code int `json:"code"`
	} `json:"error"`
}

type params struct {
	Meta            map[string]json.RawMessage `json:"_meta"`
	ProtocolVersion string                     `json:"protocolVersion"`
	RequestID       json.RawMessage            `json:"requestId"`
	Cursor          json.RawMessage            `json:"cursor"`
	InputResponses  json.RawMessage            `json:"inputResponses"`
	RequestState    json.RawMessage            `json:"requestState"`
	Mode            string                     `json:"mode"`
	Tools           json.RawMessage            `json:"tools"`
	Message         json.RawMessage            `json:"message"`
}

// reader follows the lines of one transcript.
type reader struct {
	tally
	revision  mcp.Revision
	session   bool
	open      map[string]message // requests of the client
	questions map[string]message // requests of the server
	nameless  string             // a frame that may be answered without an id
}

func (tl tally) read(t *testing.T, file string) {
	r := reader{tally: tl, revision: mcp.Revision(path.Dir(file)), open: map[string]message{}, questions: map[string]message{}}
	for _, line := range read(t, file) {
		if frame, ok := strings.CutPrefix(line, "> "); ok {
			r.client(frame)
		} else if frame, ok := strings.CutPrefix(line, "< "); ok {
			r.server(frame)
		}
	}
	r.unanswered()
	for _, m := range r.open {
		r.outcome(m.Method, "left open")
	}
}

func (r *reader) outcome(method, outcome string) { r.outcomes[method+": "+outcome] = true }

// unanswered ends the wait for an answer without an id.
func (r *reader) unanswered() {
	if r.nameless != "" {
		r.outcome(r.nameless, "not answered")
	}
	r.nameless = ""
}

func (r *reader) client(frame string) {
	r.unanswered()
	var elements []json.RawMessage
	var m message
	switch {
	case !json.Valid([]byte(frame)):
		r.nameless = "no JSON"
	case json.Unmarshal([]byte(frame), &elements) == nil && elements != nil:
		r.batch(elements)
	case json.Unmarshal([]byte(frame), &m) != nil && m.Method == "" || m.JSONRPC != "2.0" || m.Method == "" && m.Result == nil && m.Error == nil:
		r.unusable(m)
	default:
		r.sent(m)
	}
}

// unusable records JSON that is not a message. It is answered under its id, if it has one.
func (r *reader) unusable(m message) {
	if len(m.ID) == 0 || m.ID[0] == 'n' || m.ID[0] == '{' {
		r.nameless = "no message"
		return
	}
	m.Method = "no message"
	r.open[string(m.ID)] = m
}

func (r *reader) batch(elements []json.RawMessage) {
	r.nameless = "batch"
	if r.revision != mcp.Revision20250326 || !r.session {
		return
	}
	for _, element := range elements {
		var m message
		if json.Unmarshal(element, &m) != nil || m.JSONRPC != "2.0" {
			r.unusable(m)
		} else {
			r.sent(m)
		}
		if m.ID != nil {
			r.nameless = "" // an array is to come
		}
	}
}

func (r *reader) sent(m message) {
	id := string(m.ID)
	switch {
	case m.Method == "":
		r.answered(id, m)
	case m.ID == nil:
		r.outcome(m.Method, "taken")
		if cancelled, ok := r.open[string(m.Params.RequestID)]; ok && m.Method == mcpwire.NotificationCancelled {
			r.outcome(cancelled.Method, "cancelled")
			delete(r.open, string(m.Params.RequestID))
		}
	case r.revision.Modern() && r.session && m.Params.Meta[mcpwire.MetaProtocolVersion] == nil:
		// sessions of other revisions have their own transcripts
	default:
		r.open[id] = m
	}
}

// answered is the client's answer to a question.
func (r *reader) answered(id string, m message) {
	q, ok := r.questions[id]
	if !ok {
		return
	}
	delete(r.questions, id)
	var result struct{ Action string }
	_ = json.Unmarshal(m.Result, &result) // no action if it answers another question
	switch {
	case m.Error != nil:
		r.outcome(question(q), "refused")
	case result.Action != "":
		r.outcome(question(q), result.Action)
	default:
		r.outcome(question(q), "answered")
	}
}

func question(m message) string {
	switch {
	case m.Params.Mode == mcp.ElicitURL:
		return m.Method + " (url)"
	case m.Params.Tools != nil:
		return m.Method + " (tools)"
	}
	return m.Method
}

func (r *reader) server(frame string) {
	if strings.HasPrefix(frame, "[") {
		r.nameless = ""
		r.outcome("batch", "answered")
		var batch []message
		_ = json.Unmarshal([]byte(frame), &batch) // the player would have said
		for _, m := range batch {
			r.received(m)
		}
		return
	}
	var m message
	_ = json.Unmarshal([]byte(frame), &m)
	r.received(m)
}

func (r *reader) received(m message) {
	id := string(m.ID)
	request, known := r.open[id]
	switch {
	case m.Method != "" && m.ID != nil:
		r.questions[id] = m
		r.questionMembers(m)
	case m.Method != "":
		r.notified(m)
	case m.ID == nil && r.nameless != "":
		r.outcome(r.nameless, strconv.Itoa(m.Error.Code))
		r.nameless = ""
	case known:
		delete(r.open, id)
		r.response(request, m)
	}
}

func (r *reader) notified(m message) {
	r.outcome(m.Method, "sent")
	if q, ok := r.questions[string(m.Params.RequestID)]; ok && m.Method == mcpwire.NotificationCancelled {
		r.outcome(question(q), "withdrawn")
		delete(r.questions, string(m.Params.RequestID))
	}
	if m.Method == mcp.NotificationProgress && m.Params.Message != nil {
		r.members["progress: message"] = true
	}
}

func (r *reader) response(request, m message) {
	if request.Method == mcpwire.MethodInitialize && m.Result != nil {
		r.session = true
	}
	if m.Error != nil {
		r.outcome(request.Method, strconv.Itoa(m.Error.Code)+r.because(request, m.Error.Code)+retried(request))
		return
	}
	var result result
	_ = json.Unmarshal(m.Result, &result) // placeholders replace some members
	r.outcome(request.Method, result.outcome(request)+retried(request))
	for _, q := range result.InputRequests {
		r.outcome(question(q), "asked")
		r.questionMembers(q)
	}
	r.resultMembers(request.Method, m.Result)
}

// because returns the member that a modern request lacks.
func (r *reader) because(request message, code int) string {
	meta := request.Params.Meta
	switch {
	case !r.revision.Modern() || code != -32602:
		return ""
	case meta[mcpwire.MetaProtocolVersion] == nil:
		return ", no version"
	case meta[mcpwire.MetaClientCapabilities] == nil:
		return ", no capabilities"
	case meta[mcpwire.MetaLogLevel] != nil:
		return ", no log level"
	}
	return ""
}

func retried(request message) string {
	if request.Params.InputResponses != nil || request.Params.RequestState != nil {
		return ", with answers"
	}
	return ""
}

// result holds the members that distinguish outcomes.
type result struct {
	ResultType      string             `json:"resultType"`
	IsError         bool               `json:"isError"`
	ProtocolVersion string             `json:"protocolVersion"`
	InputRequests   map[string]message `json:"inputRequests"`
}

func (res result) outcome(request message) string {
	switch {
	case res.ResultType == string(mcp.ResultInputRequired) && len(res.InputRequests) > 1:
		return "input_required, several"
	case res.ResultType == string(mcp.ResultInputRequired):
		return "input_required"
	case res.IsError:
		return "tool error"
	case request.Params.Cursor != nil:
		return "ok, next page"
	case res.ProtocolVersion != request.Params.ProtocolVersion:
		return "ok, another revision"
	}
	return "ok"
}
