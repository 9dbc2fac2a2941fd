package streamable_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// Different encodings of the same event stream.
func TestEventStreamForms(t *testing.T) {
	const note = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"message":"äöü€𝄞"}}`
	plain := "event: message\ndata: " + note + "\n\ndata: %r\n\n"
	for name, text := range map[string]string{
		"LF":                        plain,
		"CRLF":                      strings.ReplaceAll(plain, "\n", "\r\n"),
		"CR":                        strings.ReplaceAll(plain, "\n", "\r"),
		"all of them":               "event: message\rdata: " + note + "\r\n\ndata: %r\n\r",
		"a byte order mark":         "\ufeff" + plain,
		"comments":                  ": hello\n\n:\n" + plain,
		"no space behind the colon": strings.ReplaceAll(plain, ": ", ":"),
		"unknown fields and names":  "event: ping\ndata: rubbish\n\nfoo: bar\nid\nretry: soon\n" + plain,
		"data in several lines":     "data: " + strings.Replace(note, ",", ",\ndata: ", 2) + "\n\ndata: %r\n\n",
		"empty data":                "data\n\ndata:\n\n" + plain,
		"rubbish between":           "data: rubbish\n\ndata: {}\n\n" + plain,
		"no response but by a name": "event: other\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":1,\"message\":\"not meant\"}}\n\n" + plain,
	} {
		t.Run(name, func(t *testing.T) {
			inBothEras(t, func(t *testing.T, r mcp.Revision) {
				for _, size := range []int{1, 3, 1 << 20} { // pieces, which cut lines, events and characters
					b := &fakeServer{post: onCall(func(w http.ResponseWriter, _ *http.Request, m posted) {
						w.Header().Set("Content-Type", "Text/Event-Stream; charset=utf-8")
						whole := strings.ReplaceAll(strings.ReplaceAll(text, "%r", said(m, "€𝄞")), "%s", string(m.ID))
						for rest := whole; rest != ""; {
							n := min(size, len(rest))
							fmt.Fprint(w, rest[:n])
							w.(http.Flusher).Flush()
							rest = rest[n:]
						}
					})}
					var told []string
					got, err := callFake(t, mustDialFake(t, b.start(t), r, client.Options{}), client.CallOptions{
						OnProgress: func(p mcp.ProgressParams) { told = append(told, p.Message) },
					})
					if err != nil || got != "€𝄞" || len(told) != 1 || told[0] != "äöü€𝄞" {
						t.Errorf("in pieces of %d bytes: %q, %v, %q", size, got, err, told)
					}
				}
			})
		})
	}
}

// A stream that is cut before the response must be a connection error. An incomplete event must be
// ignored.
func TestEventStreamsCut(t *testing.T) {
	for name, text := range map[string]string{
		"at once":                    "",
		"after a comment":            ": hello\n\n",
		"in a line":                  "da",
		"in the data":                `data: {"jsonrpc":"2.0","id":%s,"resu`,
		"in a character":             `data: {"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[{"type":"text","text":"` + "\xe2\x82",
		"before the end of the line": "data: %r",
		"before the empty line":      "data: %r\n",
		"between CR and LF":          "data: %r\r",
		"after other events":         `data: {"jsonrpc":"2.0","method":"notifications/x"}` + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, end := range []func(){func() {}, abort} {
				for _, r := range []mcp.Revision{mcp.Revision20250618, mcp.LatestRevision} { // without ids to resume from
					b := &fakeServer{post: onCall(func(w http.ResponseWriter, _ *http.Request, m posted) {
						beginStream(w, strings.ReplaceAll(strings.ReplaceAll(text, "%r", proper(m)), "%s", string(m.ID)))
						end()
					})}
					c := mustDialFake(t, b.start(t), r, client.Options{})
					got, err := callFake(t, c)
					if !errors.Is(err, mcp.ErrConnection) || !strings.Contains(err.Error(), "before the response") {
						t.Errorf("%s: %q, %v", r, got, err)
					}
					if n := b.count(mcp.MethodCallTool); n != 1 {
						t.Errorf("%s: the call was made %d times", r, n)
					}
					if err := ping(c); err != nil {
						t.Errorf("%s: afterwards: %v", r, err)
					}
				}
			}
		})
	}
}

// A list changes nothing, so it must be requested again after a cut.
func TestSafeRequestAfterACut(t *testing.T) {
	inBothEras(t, func(t *testing.T, r mcp.Revision) {
		b := &fakeServer{}
		ids := make(chan string, 8)
		b.post = func(w http.ResponseWriter, _ *http.Request, m posted) bool {
			if m.Method != mcp.MethodListTools {
				return false
			}
			ids <- string(m.ID)
			if b.count(m.Method) > 1 {
				return false
			}
			beginStream(w, ": cut\n\n")
			return true
		}
		c := mustDialFake(t, b.start(t), r, client.Options{Restart: client.Restart{Base: 1}})
		if err := ping(c); err != nil || b.count(mcp.MethodListTools) != 2 {
			t.Fatalf("%v; asked %d times", err, b.count(mcp.MethodListTools))
		}
		if lost, again := <-ids, <-ids; lost == again {
			t.Errorf("the second request has the id %s of the lost one", again)
		}
	})
}

// An event over the limit is skipped: a notification is lost, a response becomes an error, and the
// call ends in both cases.
func TestEventsOverTheLimit(t *testing.T) {
	inBothEras(t, func(t *testing.T, r mcp.Revision) {
		long := strings.Repeat("x", smallMessage)
		notification := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%q}}`, long)
		for _, id := range []string{"", "id: 0\nretry: 1\ndata:\n\nid: 1\n"} { // with ids, the client might resume for the same event
			b := &fakeServer{post: onCall(func(w http.ResponseWriter, _ *http.Request, m posted) {
				beginStream(w, id+"data: "+notification+"\n\ndata: "+proper(m)+"\n\n")
			})}
			if got, err := callFake(t, mustDialFake(t, b.start(t), r, client.Options{})); err != nil || got != "fine" {
				t.Errorf("behind a large notification: %q, %v", got, err)
			}
			large := func(w http.ResponseWriter, m posted) { beginStream(w, id+"data: "+said(m, long)+"\n\n") }
			var call posted
			b = &fakeServer{
				post: onCall(func(w http.ResponseWriter, _ *http.Request, m posted) { call = m; large(w, m) }),
				get: func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Last-Event-ID") == "" {
						w.WriteHeader(http.StatusMethodNotAllowed)
						return
					}
					large(w, call) // it is the only one there is
				},
			}
			if got, err := callFake(t, mustDialFake(t, b.start(t), r, client.Options{})); err == nil {
				t.Errorf("a large response: %q", got)
			}
			if n := b.count("GET"); n > 2 {
				t.Errorf("a large response was asked for %d times", n)
			}
		}
	})
}
