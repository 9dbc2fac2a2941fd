package config

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// typeNames are the tools' names for the kinds of servers.
var typeNames = map[string]Kind{
	"stdio": Stdio, "local": Stdio,
	"http": HTTP, "streamable-http": HTTP, "streamableHttp": HTTP, "streamable_http": HTTP, "streamable": HTTP, "remote": HTTP,
	"sse": SSE,
	"ws":  WebSocket, "websocket": WebSocket,
}

// unsupportedTypes are types that dowel cannot run, with the reason.
var unsupportedTypes = map[string]string{
	"builtin":       "it is a part of the tool that this file belongs to, and cannot be started outside of it",
	"platform":      "it is a part of the tool that this file belongs to, and cannot be started outside of it",
	"frontend":      "it is a part of the tool that this file belongs to, and cannot be started outside of it",
	"inline_python": "dowel does not run code from a configuration file; write it to a file and start that",
	"inprocess":     "it is a part of the tool that this file belongs to, and cannot be started outside of it",
}

func (e *entryReader) readType(key string, n *node) {
	e.readString("type", n, &e.typeText)
	if n.kind == stringNode && n.text == "" {
		e.errorf(n.at, `write "stdio", "http", "sse" or "ws", or leave it out`, "%s is empty", key)
	}
}

func (e *entryReader) readURL(key string, n *node) {
	if e.hasField("url") && key != "httpUrl" {
		if !e.httpURL { // httpUrl wins over Gemini's other URL key
			e.errorf(n.at, "keep one of them", "the entry has two URLs; this one is %s", key)
		}
		return
	}
	e.httpURL = e.httpURL || key == "httpUrl"
	e.readString("url", n, &e.s.URL)
}

// resolveKind determines the server's kind after all keys were read, and checks that its fields
// fit.
func (e *entryReader) resolveKind() {
	command, url := e.hasField("command"), e.hasField("url")
	given, known := typeNames[e.typeText]
	switch {
	case e.typeText != "" && !known:
		e.reportUnknownType()
	case command && url:
		e.errorf(e.s.Where("url"), "for stdio use command, args and env; for http, sse and ws use url and headers; remove one of them",
			"the entry has both a command and a url, and cannot be both started and called")
	case given == Stdio && !command:
		e.errorf(e.s.Where("type"), "add the program that starts it, and its arguments in args and env", "a server of type %q must have a command", e.typeText)
	case (given == HTTP || given == SSE || given == WebSocket) && !url:
		e.errorf(e.s.Where("type"), "add its url; headers are optional", "a server of type %q must have a url", e.typeText)
	case !command && !url:
		e.errorf(e.s.At, "add the program that starts the server, or the URL of one that runs", "the entry has neither a command nor a url")
	case command:
		e.s.Kind = Stdio
		e.checkCommand()
	default:
		e.s.Kind = e.remoteKind(given)
		e.checkURL()
	}
}

// reportUnknownType reports a type that does not exist or that dowel cannot run.
func (e *entryReader) reportUnknownType() {
	if why := unsupportedTypes[strings.ToLower(e.typeText)]; why != "" {
		e.errorf(e.s.Where("type"), "", "the server is of type %q: %s", e.typeText, why)
		return
	}
	names := slices.Sorted(maps.Keys(typeNames))
	hint := suggestName(e.typeText, names)
	if hint == "" {
		hint = `write "stdio", "http", "sse" or "ws"`
	}
	e.errorf(e.s.Where("type"), hint, "unknown server type %q", e.typeText)
}

// remoteKind returns the kind of a server with a url.
func (e *entryReader) remoteKind(given Kind) Kind {
	switch {
	case e.typeText == "remote": // says that there is a URL, but not which protocol it speaks
		return Auto
	case given != "":
		return given
	case e.httpURL:
		return HTTP
	case e.d.bareURL != "":
		return e.d.bareURL
	}
	return Auto
}

// checkCommand checks the fields of a Stdio server.
func (e *entryReader) checkCommand() {
	e.warnUnused("headers", "headersHelper", "oauth.clientId")
	at, command := e.s.Where("command"), e.s.Command
	switch {
	case e.hasError(at):
	case strings.TrimSpace(command) == "":
		e.errorf(at, "write the program that starts the server", "command is empty")
	case len(e.s.Args) == 0 && strings.Contains(command, " ") && !strings.ContainsAny(command, `/\"`):
		words := strings.Fields(command)
		e.warnf(at, fmt.Sprintf(`write "command": %q, "args": ["%s"]`, words[0], strings.Join(words[1:], `", "`)),
			"command holds spaces, and no program is called %q", command)
	}
	if strings.ContainsRune(command+strings.Join(e.s.Args, ""), 0) {
		e.errorf(at, "remove it", "the command holds a NUL byte, which cannot be passed to a program")
	}
}

// checkURL checks the fields of a server with a url.
func (e *entryReader) checkURL() {
	e.warnUnused("args", "env", "envFile", "cwd", "watchPaths", "keepDetached")
	for _, name := range slices.Sorted(maps.Keys(e.s.Headers)) {
		e.checkHeader(name)
	}
	if e.hasError(e.s.Where("url")) || strings.Contains(e.s.URL, "${") || e.d.bareVariables {
		return // checked after the variables were expanded
	}
	if why := urlProblem(e.s.URL, e.s.Kind); why != "" {
		e.errorf(e.s.Where("url"), urlHint(e.s.Kind), "url %s", why)
	}
}

// warnUnused warns of fields that have no effect for the server's kind.
func (e *entryReader) warnUnused(names ...string) {
	for _, field := range names {
		if e.hasField(field) {
			e.warnf(e.s.Where(field), "remove it", "%s has no effect on a server of type %s", field, e.s.Kind)
		}
	}
}

// urlHint shows what the URL of a server looks like.
func urlHint(k Kind) string {
	if k == WebSocket {
		return "write a URL such as wss://example.com/ws"
	}
	return "write a URL such as https://example.com/mcp"
}

// urlProblem describes the problem of the URL of a server, or returns "". It does not quote the
// URL, which may hold a secret.
func urlProblem(text string, k Kind) string {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case text == "":
		return "is empty"
	case err != nil:
		return "is malformed"
	case u.Scheme == "unix" || u.Scheme == "pipe":
		return fmt.Sprintf("begins with %s://, which dowel does not support", u.Scheme)
	case k == WebSocket && !isWebSocket(u):
		return "must begin with wss:// or ws://"
	case k == Auto && isWebSocket(u):
	case k != WebSocket && u.Scheme != "http" && u.Scheme != "https":
		return "must begin with https:// or http://"
	}
	if u.Host == "" {
		return "has no host"
	}
	return ""
}

func isWebSocket(u *url.URL) bool { return u.Scheme == "ws" || u.Scheme == "wss" }
