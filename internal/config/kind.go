package config

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// kinds are the words that the tools have for the kinds of servers.
var kinds = map[string]Kind{
	"stdio": Stdio, "local": Stdio,
	"http": HTTP, "streamable-http": HTTP, "streamableHttp": HTTP, "streamable_http": HTTP, "streamable": HTTP, "remote": HTTP,
	"sse": SSE,
}

// foreign are kinds that exist, but not here.
var foreign = map[string]string{
	"ws":            "dowel does not speak MCP over WebSocket",
	"websocket":     "dowel does not speak MCP over WebSocket",
	"builtin":       "it is a part of the tool that this file belongs to, and cannot be started outside of it",
	"platform":      "it is a part of the tool that this file belongs to, and cannot be started outside of it",
	"frontend":      "it is a part of the tool that this file belongs to, and cannot be started outside of it",
	"inline_python": "dowel does not run programs that stand in a configuration; write it into a file and start that",
	"inprocess":     "it is a part of the tool that this file belongs to, and cannot be started outside of it",
}

func (e *entry) kind(key string, n *node) {
	e.string("type", n, &e.written)
	if n.kind == stringNode && n.text == "" {
		e.errorf(n.at, `write "stdio", "http" or "sse", or leave it out`, "%s is empty", key)
	}
}

func (e *entry) url(key string, n *node) {
	if e.has("url") && key != "httpUrl" {
		if !e.httpURL { // of Gemini's two, httpUrl counts
			e.errorf(n.at, "keep one of them", "there are two URLs, this one as %s", key)
		}
		return
	}
	e.httpURL = e.httpURL || key == "httpUrl"
	e.string("url", n, &e.s.URL)
}

// settleKind decides how the server is reached, once all keys are read.
func (e *entry) settleKind() {
	command, url := e.has("command"), e.has("url")
	given, known := kinds[e.written]
	switch {
	case e.written != "" && !known:
		e.strangeKind()
	case command && url:
		e.errorf(e.s.Where("url"), "for stdio use command, args and env; for http and sse use url and headers; remove one of them",
			"the entry has both a command and a url, and cannot be both started and called")
	case given == Stdio && !command:
		e.errorf(e.s.Where("type"), "add the program that starts it, and its arguments in args and env", "a server of type %q must have a command", e.written)
	case (given == HTTP || given == SSE) && !url:
		e.errorf(e.s.Where("type"), "add its url; headers are optional", "a server of type %q must have a url", e.written)
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

func (e *entry) strangeKind() {
	if why := foreign[strings.ToLower(e.written)]; why != "" {
		e.errorf(e.s.Where("type"), "", "the server is of type %q: %s", e.written, why)
		return
	}
	names := slices.Sorted(maps.Keys(kinds))
	hint := suggest(e.written, names)
	if hint == "" {
		hint = `write "stdio", "http" or "sse"`
	}
	e.errorf(e.s.Where("type"), hint, "there is no server type %q", e.written)
}

func (e *entry) remoteKind(given Kind) Kind {
	switch {
	case e.written == "remote": // which says that there is a URL, and not how to speak there
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

func (e *entry) checkCommand() {
	e.useless("headers", "headersHelper", "oauth.clientId")
	at, command := e.s.Where("command"), e.s.Command
	switch {
	case e.failed(at):
	case strings.TrimSpace(command) == "":
		e.errorf(at, "write the program that starts the server", "command is empty")
	case len(e.s.Args) == 0 && strings.Contains(command, " ") && !strings.ContainsAny(command, `/\"`):
		words := strings.Fields(command)
		e.warnf(at, fmt.Sprintf(`write "command": %q, "args": ["%s"]`, words[0], strings.Join(words[1:], `", "`)),
			"command holds spaces, and no program is called %q", command)
	}
	if strings.ContainsRune(command+strings.Join(e.s.Args, ""), 0) {
		e.errorf(at, "remove it", "the command holds a NUL byte, which no program can be given")
	}
}

func (e *entry) checkURL() {
	e.useless("args", "env", "envFile", "cwd", "watchPaths")
	for _, name := range slices.Sorted(maps.Keys(e.s.Headers)) {
		e.checkHeader(name)
	}
	if e.failed(e.s.Where("url")) || strings.Contains(e.s.URL, "${") || e.d.bareVariables {
		return // it is looked at once the variables have values
	}
	if why := badURL(e.s.URL); why != "" {
		e.errorf(e.s.Where("url"), "write a URL such as https://example.com/mcp", "url %s", why)
	}
}

// useless warns of fields that the server's kind has no use for.
func (e *entry) useless(names ...string) {
	for _, field := range names {
		if e.has(field) {
			e.warnf(e.s.Where(field), "remove it", "%s has no effect on a server of type %s", field, e.s.Kind)
		}
	}
}

// badURL says what is wrong with a URL, without the URL, which may hold a secret.
func badURL(text string) string {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case text == "":
		return "is empty"
	case err != nil:
		return "is malformed"
	case u.Scheme == "unix" || u.Scheme == "pipe":
		return fmt.Sprintf("begins with %s://, which dowel does not support", u.Scheme)
	case u.Scheme != "http" && u.Scheme != "https":
		return "must begin with https:// or http://"
	case u.Host == "":
		return "has no host"
	}
	return ""
}
