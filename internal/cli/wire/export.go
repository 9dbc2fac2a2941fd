package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/version"
	"github.com/dowel-mcp/dowel/mcp"
)

// commandNames are the values of --as.
var commandNames = []string{"curl", "dowel", "go-test"}

// commandWriter writes each call as a command that repeats it.
type commandWriter struct {
	f  *factory.Factory
	as string
}

func (w *commandWriter) wants() (frames, operations bool) { return false, true }

func (w *commandWriter) writeFrame(*journal.Frame, journal.Line) {}

func (w *commandWriter) writeGap(g journal.Gap, _, _ time.Time) {
	w.f.Warn("%d records are lost", g.Len())
}

func (w *commandWriter) end() {}

func (w *commandWriter) writeOperation(o *journal.Operation, frames []*journal.Frame, _ journal.Line) {
	request := firstRequest(frames)
	if o.Method != mcp.MethodCallTool || request == nil || o.IsOpen() {
		return
	}
	arguments := asciiJSON(rawjson.Lookup(rawjson.Lookup(request.Body, "params"), "arguments"))
	if arguments == "" {
		arguments = "{}"
	}
	if request.IsCut() || rawjson.CheckAll([]byte(arguments)) != nil {
		w.f.Warn("operation %d is left out: its request is longer than dowel keeps", o.ID)
		return
	}
	switch w.as {
	case "curl":
		fmt.Fprintln(w.f.Stdout, curlCommand(o.Name, arguments))
	case "dowel":
		fmt.Fprintln(w.f.Stdout, dowelCommand(o, frames, arguments))
	case "go-test":
		fmt.Fprintln(w.f.Stdout, goTest(o, arguments, lastResult(frames)))
	}
}

// firstRequest returns the first request of a client among frames, or else the first request.
func firstRequest(frames []*journal.Frame) *journal.Frame {
	for _, leg := range []journal.Leg{journal.ClientLeg, journal.ServerLeg} {
		for _, f := range frames {
			if f.Leg == leg && f.Kind == journal.Request && f.Method == mcp.MethodCallTool {
				return f
			}
		}
	}
	return nil
}

// lastResult returns the result that the client got, or nil.
func lastResult(frames []*journal.Frame) []byte {
	for _, f := range slices.Backward(frames) {
		if f.Kind == journal.Response && f.Method == mcp.MethodCallTool && f.Leg == frames[0].Leg {
			return rawjson.Lookup(f.Body, "result")
		}
	}
	return nil
}

// asciiJSON returns JSON in ASCII, so that no terminal interprets a part of it.
func asciiJSON(raw []byte) string {
	var b strings.Builder
	for _, r := range string(raw) {
		switch {
		case r >= ' ' && r < 0x7f:
			b.WriteRune(r)
		case r < ' ':
			b.WriteByte(' ') // between values: strings have none
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		}
	}
	return b.String()
}

// quoteWord quotes a word for a shell.
func quoteWord(word string) string {
	word = show(word)
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@,+") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func quoteJSON(raw string) string { return "'" + strings.ReplaceAll(raw, "'", `'\''`) + "'" }

// dowelCommand returns a dowel call. The server leg has the server's own name of the tool.
func dowelCommand(o *journal.Operation, frames []*journal.Frame, arguments string) string {
	name := o.Name
	for _, f := range frames {
		if f.Leg == journal.ServerLeg && f.Method == mcp.MethodCallTool && f.Kind == journal.Request {
			name = f.Name
		}
	}
	if o.Server != "" {
		name = o.Server + "." + name
	}
	return "dowel call " + quoteWord(name) + " --args " + quoteJSON(arguments)
}

// curlCommand returns a request of the latest revision, which needs no session. The token comes
// from dowel status, so that the command holds no secret.
func curlCommand(tool, arguments string) string {
	quoted, _ := json.Marshal(tool) // a string can always be encoded
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%s,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":%q,`+
		`"io.modelcontextprotocol/clientInfo":{"name":"curl","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		asciiJSON(quoted), arguments, mcp.LatestRevision)
	return `curl -sS -H "$(dowel status --token)" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: ` +
		string(mcp.LatestRevision) + `' -H 'Mcp-Method: tools/call' -H ` + quoteJSON("Mcp-Name: "+asciiJSON([]byte(tool))) +
		" --data " + quoteJSON(body) + " http://127.0.0.1:7800/mcp"
}

// goTest returns a test that repeats a call and compares the result.
func goTest(o *journal.Operation, arguments string, result []byte) string {
	content := rawjson.Lookup(result, "structuredContent")
	check := fmt.Sprintf("if res.IsError != %v {\n\t\tt.Errorf(\"got %%+v\", res)\n\t}", o.Status == journal.ToolError)
	if content != nil {
		check += fmt.Sprintf("\n\tif want := %s; string(res.StructuredContent) != want {\n\t\tt.Errorf(\"got %%s, want %%s\", res.StructuredContent, want)\n\t}",
			strconv.QuoteToASCII(asciiJSON(content)))
	}
	return fmt.Sprintf(`func Test%s(t *testing.T) {
	c, err := client.Dial(t.Context(), target, nil) // the server to test: a command, a URL or a handler
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	res, err := c.CallTool(t.Context(), mcp.CallToolParams{Name: %s, Arguments: json.RawMessage(%s)})
	if err != nil {
		t.Fatal(err)
	}
	%s
}
`, testName(o), strconv.QuoteToASCII(o.Name), strconv.QuoteToASCII(arguments), check)
}

// testName returns a name for the test of an operation, such as CreateIssue81.
func testName(o *journal.Operation) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(o.Name, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String() + strconv.FormatUint(o.ID, 10)
}

// harWriter writes the pairs of requests and responses in the HTTP Archive format 1.2, also those
// that were not sent over HTTP: their URL is mcp://SERVER/METHOD.
type harWriter struct {
	f       *factory.Factory
	entries []harEntry
}

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

func (w *harWriter) wants() (frames, operations bool) { return false, true }

func (w *harWriter) writeFrame(*journal.Frame, journal.Line) {}

func (w *harWriter) writeGap(g journal.Gap, _, _ time.Time) { w.f.Warn("%d records are lost", g.Len()) }

// writeOperation adds an entry for each request of an operation that has its response.
func (w *harWriter) writeOperation(o *journal.Operation, frames []*journal.Frame, _ journal.Line) {
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
				w.entries = append(w.entries, newHAREntry(o, request, f))
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

// end writes the archive.
func (w *harWriter) end() {
	slices.SortStableFunc(w.entries, func(a, b harEntry) int { return a.Started.Compare(b.Started) })
	if w.entries == nil {
		w.entries = []harEntry{}
	}
	creator := map[string]string{"name": "dowel", "version": version.Number()}
	factory.WriteJSONLine(w.f.Stdout, map[string]any{"log": map[string]any{"version": "1.2", "creator": creator, "entries": w.entries}})
}
