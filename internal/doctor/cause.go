package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// finding is a cause: the step that it belongs to, what is wrong, and one sentence that says what to do.
type finding struct{ step, summary, advice string }

// causes are asked in order; the first one that knows the error names its cause.
var causes = []func(*evidence) (finding, bool){
	undialable, stopped, misplaced, ofProcess, ofHTTP, ofNetwork, ofTime, ofProtocol,
}

func (e *evidence) cause() finding {
	for _, look := range causes {
		if f, ok := look(e); ok {
			return f
		}
	}
	return finding{stepHandshake, inner(e.err).Error(), "Look at what the server and dowel say to each other, which --wire shows."}
}

// undialable finds what is wrong with the definition itself.
func undialable(e *evidence) (finding, bool) {
	is := func(summary, advice string) (finding, bool) { return finding{stepDefinition, summary, advice}, true }
	o := e.p.Options
	if err := (&transport.ClientOptions{Revision: o.Wire.Revision}).Check(); err != nil {
		return is(err.Error(), "Correct the protocol revision, or leave it out.")
	}
	switch {
	case e.p.Target == nil:
		return is("there is neither a command nor a URL", "Give the server a command or a URL.")
	case e.command != nil && e.command.Path == "":
		return is("the command is empty", "Give the name or the path of the program that starts the server.")
	case !e.isURL:
		return finding{}, false
	case strings.TrimSpace(e.address) == "":
		return is("the URL is empty", "Give the URL of the server, such as https://host/mcp.")
	case e.url == nil:
		_, err := url.Parse(e.address)
		if at, ok := errors.AsType[*url.Error](err); ok {
			err = at.Err // without the URL, which may hold secrets
		}
		return is(fmt.Sprintf("the URL is malformed: %v", err), "Write the URL as https://host/path.")
	}
	switch e.url.Scheme {
	case "http", "https":
	case "ws", "wss", "sse":
		return is("MCP is not spoken over "+e.url.Scheme, "Give the server's URL of http or https.")
	default:
		return is(fmt.Sprintf("%q is no URL of http or https", shownAddress(e.address)), "Write https:// or http:// in front of the URL.")
	}
	if e.url.Hostname() == "" {
		return is("the URL names no host", "Write the URL as https://host/path.")
	}
	return finding{}, false
}

// shownAddress is the beginning of what should be a URL: what may be secret stands behind it.
func shownAddress(address string) string {
	if i := strings.IndexAny(address, "?#"); i >= 0 {
		address = address[:i] + hidden
	}
	if i := strings.LastIndexByte(address, '@'); i >= 0 {
		address = hidden + address[i:]
	}
	return address
}

// stopped finds that nothing failed, but somebody wanted no more.
func stopped(e *evidence) (finding, bool) {
	if !errors.Is(e.err, context.Canceled) && !errors.Is(e.err, mcp.ErrClosed) {
		return finding{}, false
	}
	return finding{e.pending(), "it was stopped before it was done", "Try again, and let it come to its end."}, true
}

// pending is the step that was under way when time ran out.
func (e *evidence) pending() string {
	if e.stage != "" {
		return e.stage
	}
	return stepHandshake
}

// ofProtocol finds that a server has answered, and not as the protocol says.
func ofProtocol(e *evidence) (finding, bool) {
	is := func(summary, advice string) (finding, bool) { return finding{stepHandshake, summary, advice}, true }
	text := inner(e.err).Error()
	answered, refused := errors.AsType[*mcp.Error](e.err)
	switch {
	case strings.Contains(text, "is pinned"):
		return is(text, "Leave out the pinned revision, or update the server.")
	case strings.Contains(text, "no common protocol version"):
		return is(text, "Update the server, or dowel: they share no revision of the protocol.")
	case e.isURL && speaksOther.MatchString(text):
		return is("what answers there does not speak MCP", "Check that the URL is that of the MCP endpoint, whose path is often /mcp or /sse.")
	case len(e.stray) > 0:
		return e.complaint()
	case strings.Contains(text, "closed its stdout and lives on"):
		return is("the server closed its stdout and lives on", "Check that the arguments start the server in the foreground and in its stdio mode.")
	case refused:
		return is(fmt.Sprintf("the server refuses the handshake: %s (code %d)", answered.Message, answered.Code), "Update the server, or report this answer to its author.")
	}
	return finding{}, false
}

// speaksOther is what dowel says of an answer that does not follow the protocol at all.
var speaksOther = re(`neither server/discover nor initialize|without a response|and no message|no JSON-RPC 2\.0 message`)

// polluted is what becomes of a server that writes other things to its stdout.
func (e *evidence) polluted() finding {
	for _, line := range e.stray {
		if serving.MatchString(line) {
			return finding{stepStdout, fmt.Sprintf("the server serves HTTP and not stdio: it prints %q", clean(line)),
				"Start the server with the argument for stdio, or give the URL that it prints in place of the command."}
		}
	}
	return finding{stepStdout, fmt.Sprintf("the server writes to stdout what is no message: %q", clean(e.stray[len(e.stray)-1])), adviseStdout}
}

// ofTime finds that nothing came in time.
func ofTime(e *evidence) (finding, bool) {
	limit, ok := errors.AsType[*client.TimeoutError](e.err)
	if !ok && !errors.Is(e.err, context.DeadlineExceeded) {
		return finding{}, false
	}
	summary := "it took too long"
	if ok {
		summary = limit.Error()
	}
	if e.isURL {
		return e.silent(summary), true
	}
	if e.command == nil {
		return finding{stepHandshake, summary, "Raise the time that the server may take to start, or find out what it waits for."}, true
	}
	if f, found := e.complaint(); found {
		f.summary = summary + ": " + f.summary
		return f, true
	}
	if runner := coldRunner(e.command); runner != "" {
		return finding{stepHandshake, summary + "; " + runner + " may be downloading the server",
			"Run the command once in a terminal so that the download is done, or raise the time that the server may take to start."}, true
	}
	return finding{stepHandshake, summary + ": the process runs and says nothing",
		"Check that the arguments start the server in its stdio mode, or raise the time that it may take to start."}, true
}

// silent is a URL that was waited for in vain.
func (e *evidence) silent(summary string) finding {
	switch step := e.pending(); step {
	case stepName:
		return finding{step, summary + ": the name server does not answer", "Check the network and its name server."}
	case stepConnect:
		return finding{step, summary + ": nobody answers at the address" + e.tried(), adviseUnreachable}
	case stepTLS:
		return finding{step, summary + ": the TLS handshake has not ended", "Check that the port is one of https, and that no firewall is in between."}
	default:
		return finding{step, summary + ": the server has taken the request and does not answer", "Restart the server or ask who runs it, for it hangs."}
	}
}

func (e *evidence) tried() string {
	if len(e.refused) == 0 {
		return ""
	}
	return " (" + strings.Join(e.refused, "; ") + ")"
}
