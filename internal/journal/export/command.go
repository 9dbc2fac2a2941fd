// Package export turns operations of the journal into commands that repeat them, and into HTTP
// archives.
package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// CommandNames are the forms of [Command].
var CommandNames = []string{"curl", "dowel", "go-test"}

// Errors of [Arguments] and [Command].
var (
	ErrNoCall = errors.New("only calls of tools can be repeated")
	ErrCut    = errors.New("its request is longer than dowel keeps")
)

// Arguments returns the JSON text of the arguments of a tool call, in ASCII.
func Arguments(o *journal.Operation, frames []*journal.Frame) (string, error) {
	request := firstRequest(frames)
	if o.Method != mcp.MethodCallTool || request == nil {
		return "", ErrNoCall
	}
	arguments := asciiJSON(rawjson.Lookup(rawjson.Lookup(request.Body, "params"), "arguments"))
	if arguments == "" {
		arguments = "{}"
	}
	if request.IsCut() || rawjson.CheckAll([]byte(arguments)) != nil {
		return "", ErrCut
	}
	return arguments, nil
}

// Command returns a command that repeats a tool call, or a Go test of it. form is one of
// [CommandNames].
func Command(form string, o *journal.Operation, frames []*journal.Frame) (string, error) {
	arguments, err := Arguments(o, frames)
	if err != nil {
		return "", err
	}
	switch form {
	case "curl":
		return curlCommand(o.Name, arguments), nil
	case "dowel":
		return dowelCommand(o, frames, arguments), nil
	}
	return goTest(o, arguments, Result(frames)), nil
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

// Result returns the result that the client of a tool call got, or nil.
func Result(frames []*journal.Frame) []byte {
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
	word = term.RevealLine(strings.ToValidUTF8(word, "\uFFFD"))
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@,+") == "" {
		return word
	}
	return quoteJSON(word)
}

func quoteJSON(raw string) string { return "'" + strings.ReplaceAll(raw, "'", `'\''`) + "'" }

// LocalName returns the server's own name of a called tool, or the client's if the server was not
// called.
func LocalName(o *journal.Operation, frames []*journal.Frame) string {
	name := o.Name
	for _, f := range frames {
		if f.Leg == journal.ServerLeg && f.Method == mcp.MethodCallTool && f.Kind == journal.Request {
			name = f.Name
		}
	}
	return name
}

// dowelCommand returns a dowel call. The server leg has the server's own name of the tool.
func dowelCommand(o *journal.Operation, frames []*journal.Frame, arguments string) string {
	name := LocalName(o, frames)
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
