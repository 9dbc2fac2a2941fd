package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// finding is a cause of a failed start: the failed step, a summary, and one sentence of advice.
type finding struct{ step, summary, advice string }

// causes are tried in order. The first one that recognises the error wins.
var causes = []func(*evidence) (finding, bool){
	findBadDefinition, findCancellation, findStartFailure, findProcessExit, findRefusedLogin, findHTTPError, findNetworkError, findTimeout, findProtocolError,
}

// findCause returns the finding of the first cause that recognises the error. An error that none
// recognises is shown as a failure of the handshake.
func (e *evidence) findCause() finding {
	for _, look := range causes {
		if f, ok := look(e); ok {
			return f
		}
	}
	return finding{stepHandshake, trimDialPrefix(e.err).Error(), "Add --wire to see the messages between dowel and the server."}
}

// findBadDefinition finds errors in the definition itself.
func findBadDefinition(e *evidence) (finding, bool) {
	is := func(summary, advice string) (finding, bool) { return finding{stepDefinition, summary, advice}, true }
	o := e.server.Options
	if err := mcpwire.CheckPinned(o.Wire.Revision); err != nil {
		return is(err.Error(), "Correct the protocol revision, or leave it out.")
	}
	switch {
	case e.server.Target == nil:
		return is("the definition has neither a command nor a URL", "Give the server a command or a URL.")
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
	case "http", "https", "ws", "wss":
	case "sse":
		return is("MCP does not run over "+e.url.Scheme, "Give the server's http or https URL.")
	default:
		return is(fmt.Sprintf("%q is not an http or https URL", shownAddress(e.address)), "Write https:// or http:// in front of the URL.")
	}
	if e.url.Hostname() == "" {
		return is("the URL names no host", "Write the URL as https://host/path.")
	}
	return finding{}, false
}

// shownAddress returns a malformed URL without its user, password, query and fragment, which may
// hold secrets.
func shownAddress(address string) string {
	if i := strings.IndexAny(address, "?#"); i >= 0 {
		address = address[:i] + hidden
	}
	if i := strings.LastIndexByte(address, '@'); i >= 0 {
		address = hidden + address[i:]
	}
	return address
}

// findCancellation recognises a start that was cancelled and did not fail.
func findCancellation(e *evidence) (finding, bool) {
	if !errors.Is(e.err, context.Canceled) && !errors.Is(e.err, mcp.ErrClosed) {
		return finding{}, false
	}
	return finding{e.pendingStep(), "the check was stopped before it was complete", "Try again and wait for the end."}, true
}

// pendingStep returns the step that was in progress when the start ended.
func (e *evidence) pendingStep() string {
	if e.stage != "" {
		return e.stage
	}
	return stepHandshake
}

// findProtocolError recognises an answer that violates the protocol or refuses the handshake.
func findProtocolError(e *evidence) (finding, bool) {
	is := func(summary, advice string) (finding, bool) { return finding{stepHandshake, summary, advice}, true }
	text := trimDialPrefix(e.err).Error()
	answered, refused := errors.AsType[*mcp.Error](e.err)
	switch {
	case strings.Contains(text, "is pinned"):
		return is(text, "Leave out the pinned revision, or update the server.")
	case strings.Contains(text, "no common protocol version"):
		return is(text, "Update the server, or dowel: they share no revision of the protocol.")
	case e.isURL && notMCP().MatchString(text):
		return is("the server at this URL does not speak MCP", adviseEndpoint)
	case len(e.stdoutLines) > 0:
		return e.matchComplaint()
	case strings.Contains(text, "closed its stdout and still runs"):
		return is("the server closed its stdout and keeps running", "Check that the arguments start the server in the foreground and in its stdio mode.")
	case refused:
		return is(fmt.Sprintf("the server refuses the handshake: %s (code %d)", answered.Message, answered.Code), "Update the server, or report this answer to its author.")
	}
	return finding{}, false
}

// notMCP matches dowel's own errors for an answer that is not MCP at all.
var notMCP = lazyregexp.New(`neither server/discover nor initialize|without a response|and no message|no JSON-RPC 2\.0 message`)

// describeStdout explains lines on stdout that are not messages.
func (e *evidence) describeStdout() finding {
	for _, line := range e.stdoutLines {
		if httpServerLine().MatchString(line) {
			return finding{stepStdout, fmt.Sprintf("the server serves HTTP and not stdio: it prints %q", stripControls(line)),
				"Start the server with the argument for stdio, or give the URL that it prints in place of the command."}
		}
	}
	return finding{stepStdout, fmt.Sprintf("the server writes lines to stdout that are not messages: %q", stripControls(e.stdoutLines[len(e.stdoutLines)-1])), adviseStdout}
}

// findTimeout recognises a start that ran out of time.
func findTimeout(e *evidence) (finding, bool) {
	limit, ok := errors.AsType[*client.TimeoutError](e.err)
	if !ok && !errors.Is(e.err, context.DeadlineExceeded) {
		return finding{}, false
	}
	summary := "it took too long"
	if ok {
		summary = limit.Error()
	}
	if e.isURL {
		return e.explainSilentURL(summary), true
	}
	if e.command == nil {
		return finding{stepHandshake, summary, "Raise the time that the server may take to start, or find out what it waits for."}, true
	}
	if f, found := e.matchComplaint(); found {
		f.summary = summary + ": " + f.summary
		return f, true
	}
	if runner := downloadingRunner(e.command); runner != "" {
		return finding{stepHandshake, summary + "; " + runner + " may be downloading the server",
			"Run the command once in a terminal so that the download is done, or raise the time that the server may take to start."}, true
	}
	return finding{stepHandshake, summary + ": the process runs and says nothing",
		"Check that the arguments start the server in its stdio mode, or raise the time that it may take to start."}, true
}

// explainSilentURL explains a URL that did not answer in time.
func (e *evidence) explainSilentURL(summary string) finding {
	switch step := e.pendingStep(); step {
	case stepName:
		return finding{step, summary + ": the name server does not answer", "Check the network and its name server."}
	case stepConnect:
		return finding{step, summary + ": the address does not answer" + e.refusedSuffix(), adviseUnreachable}
	case stepTLS:
		return finding{step, summary + ": the TLS handshake has not ended", "Check that the port serves https, and that no firewall is in between."}
	default:
		return finding{step, summary + ": the server has taken the request and does not answer", "Restart the server, which hangs, or ask its operator to."}
	}
}

// refusedSuffix lists the addresses that refused, in parentheses, or returns "".
func (e *evidence) refusedSuffix() string {
	if len(e.refusedAddresses) == 0 {
		return ""
	}
	return " (" + strings.Join(e.refusedAddresses, "; ") + ")"
}
