package export

import (
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/version"
)

// Archive collects pairs of requests and responses in the HTTP Archive format 1.2. Pairs that were
// not sent over HTTP get the URL mcp://SERVER/METHOD. The zero value is empty.
type Archive struct{ entries []harEntry }

type harEntry struct {
	Started  time.Time      `json:"startedDateTime"`
	Time     float64        `json:"time"`
	Request  harRequest     `json:"request"`
	Response harResponse    `json:"response"`
	Cache    struct{}       `json:"cache"`
	Timings  harTimings     `json:"timings"`
	Details  map[string]any `json:"_dowel"`
}

type harRequest struct {
	Method      string     `json:"method"`
	URL         string     `json:"url"`
	HTTPVersion string     `json:"httpVersion"`
	Headers     []harField `json:"headers"`
	Query       []harField `json:"queryString"`
	Cookies     []harField `json:"cookies"`
	HeadersSize int        `json:"headersSize"`
	BodySize    int        `json:"bodySize"`
	PostData    harBody    `json:"postData"`
}

type harResponse struct {
	Status      int        `json:"status"`
	StatusText  string     `json:"statusText"`
	HTTPVersion string     `json:"httpVersion"`
	Headers     []harField `json:"headers"`
	Cookies     []harField `json:"cookies"`
	Content     harBody    `json:"content"`
	RedirectURL string     `json:"redirectURL"`
	HeadersSize int        `json:"headersSize"`
	BodySize    int        `json:"bodySize"`
}

type harTimings struct {
	Send    float64 `json:"send"`
	Wait    float64 `json:"wait"`
	Receive float64 `json:"receive"`
}

type harField struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type harBody struct {
	Size int    `json:"size,omitzero"`
	Type string `json:"mimeType"`
	Text string `json:"text"`
}

// Add adds an entry for each request of an operation that has its response. An open operation adds
// nothing.
func (a *Archive) Add(o *journal.Operation, frames []*journal.Frame) {
	if o.IsOpen() {
		return
	}
	type key struct {
		conn uint64
		sent bool
		id   string
	}
	requests := map[key]*journal.Frame{}
	for _, f := range frames {
		isSent := f.Direction == framesink.Sent
		switch f.Kind {
		case journal.Request:
			requests[key{f.Conn, isSent, f.ID.String()}] = f
		case journal.Response:
			at := key{f.Conn, !isSent, f.ID.String()}
			if request := requests[at]; request != nil {
				a.entries = append(a.entries, newHAREntry(o, request, f))
				delete(requests, at)
			}
		}
	}
}

func newHAREntry(o *journal.Operation, request, response *journal.Frame) harEntry {
	host := "dowel"
	if request.Leg == journal.ServerLeg && request.Server != "" {
		host = request.Server
	}
	ms := float64(response.Took.Microseconds()) / 1000
	e := harEntry{Started: request.Time, Time: ms, Timings: harTimings{Wait: ms}}
	e.Request = harRequest{
		Method: "POST", URL: "mcp://" + host + "/" + request.Method, HTTPVersion: "HTTP/1.1", Headers: harFields(request.Header), Query: []harField{},
		Cookies: []harField{}, HeadersSize: -1, BodySize: request.Size, PostData: harBody{Type: "application/json", Text: validText(request.Body)},
	}
	e.Response = harResponse{
		Status: 200, StatusText: string(response.Status), HTTPVersion: "HTTP/1.1", Headers: harFields(response.Header), Cookies: []harField{}, HeadersSize: -1,
		BodySize: response.Size, Content: harBody{Size: response.Size, Type: "application/json", Text: validText(response.Body)},
	}
	e.Details = map[string]any{"op": o.ID, "leg": request.Leg.String(), "client": o.Client, "server": o.Server, "name": request.Name, "status": response.Status}
	return e
}

func validText(body []byte) string { return strings.ToValidUTF8(string(body), "\uFFFD") }

func harFields(header map[string][]string) []harField {
	fields := []harField{}
	for name, values := range header {
		for _, value := range values {
			fields = append(fields, harField{name, value})
		}
	}
	slices.SortFunc(fields, func(a, b harField) int { return strings.Compare(a.Name+a.Value, b.Name+b.Value) })
	return fields
}

// Document returns the archive for an encoder of JSON.
func (a *Archive) Document() any {
	slices.SortStableFunc(a.entries, func(x, y harEntry) int { return x.Started.Compare(y.Started) })
	if a.entries == nil {
		a.entries = []harEntry{}
	}
	creator := map[string]string{"name": "dowel", "version": version.Number()}
	return map[string]any{"log": map[string]any{"version": "1.2", "creator": creator, "entries": a.entries}}
}
