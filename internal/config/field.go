package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
)

// fields reads the keys of an entry: the union of what the tools write. What a key means in one tool only is decided by the
// dialect, in the functions.
var fields = map[string]func(e *entry, key string, n *node){
	"type": (*entry).kind, "transport": (*entry).kind, "transportType": (*entry).kind,

	"command": (*entry).command, "cmd": (*entry).command,
	"args": func(e *entry, _ string, n *node) { e.strings("args", n, &e.s.Args) },
	"env":  (*entry).env, "environment": (*entry).env, "envs": (*entry).env,
	"env_keys": (*entry).envKeys, "env_vars": (*entry).passEnv,
	"cwd":            func(e *entry, _ string, n *node) { e.string("cwd", n, &e.s.Dir) },
	"envFile":        func(e *entry, _ string, n *node) { e.string("envFile", n, &e.s.EnvFile) },
	"sandbox":        (*entry).sandbox,
	"sandboxEnabled": (*entry).sandbox,
	"dev":            (*entry).dev,
	"watchPaths":     (*entry).watch,

	"url": (*entry).url, "serverUrl": (*entry).url, "uri": (*entry).url, "httpUrl": (*entry).url,
	"headers": (*entry).headers, "http_headers": (*entry).headers,
	"env_http_headers":     (*entry).envHeaders,
	"bearer_token_env_var": (*entry).bearer,
	"headersHelper":        func(e *entry, _ string, n *node) { e.string("headersHelper", n, &e.s.HeadersHelper) },
	"oauth":                func(e *entry, _ string, n *node) { e.oauth("oauth", n) },
	"auth":                 (*entry).auth,
	"noOAuth":              (*entry).noOAuth,
	"oauthClientId":        func(e *entry, _ string, n *node) { e.oauthString("clientId", n) },
	"oauthClientSecret":    func(e *entry, _ string, n *node) { e.oauthString("clientSecret", n) },
	"oauthScopes":          func(e *entry, _ string, n *node) { e.scopes("oauthScopes", n) },
	"oauth_resource":       func(e *entry, _ string, n *node) { e.oauthString("resource", n) },
	"scopes":               func(e *entry, _ string, n *node) { e.scopes("scopes", n) },

	"disabled": func(e *entry, _ string, n *node) { e.flag("disabled", n, &e.s.Disabled) },
	"enabled":  (*entry).enabled,
	"required": func(e *entry, _ string, n *node) { e.flag("required", n, &e.s.Required) },

	"disabledTools": (*entry).hide, "excludeTools": (*entry).hide, "disabled_tools": (*entry).hide, "excludedTools": (*entry).hide,
	"includeTools": (*entry).only, "enabled_tools": (*entry).only, "allowedTools": (*entry).only, "available_tools": (*entry).only,
	"tools":   (*entry).tools,
	"options": (*entry).options,

	"alwaysAllow": (*entry).allow, "autoApprove": (*entry).allow,
	"trust": (*entry).trust,

	"timeout":             (*entry).timeout,
	"startup_timeout_sec": (*entry).seconds, "tool_timeout_sec": (*entry).seconds,
	"startup_timeout_ms": (*entry).milliseconds, "connectionTimeout": (*entry).milliseconds, "requestTimeout": (*entry).milliseconds,
	"startTimeout": func(e *entry, _ string, n *node) { e.duration("startTimeout", n, e.d.timeout, &e.s.Start) },
	"idleTimeout":  func(e *entry, _ string, n *node) { e.duration("idleTimeout", n, e.d.timeout, &e.s.Idle) },
	"idleStop":     func(e *entry, _ string, n *node) { e.duration("idleStop", n, e.d.timeout, &e.s.IdleStop) },

	"sharing":   (*entry).sharing,
	"lazy":      func(e *entry, _ string, n *node) { e.flag("lazy", n, &e.s.Lazy) },
	"serialize": func(e *entry, _ string, n *node) { e.flag("serialize", n, &e.s.Serialize) },
	"revision":  (*entry).revision, "protocolEra": (*entry).revision,
}

// ignored are keys of the tools that say nothing that dowel would do in another way for: descriptions for people, where an entry
// came from, and how eagerly its tools are put before a model.
var ignored = []string{
	"name", "description", "display_name", "displayName", "title", "icon", "gallery", "version", "source", "bundled", "metadata",
	"alwaysLoad", "deferTools", "settings",
}

// mistaken are keys that are often written for others without being near to them.
var mistaken = map[string]string{
	"dir": "cwd", "workdir": "cwd", "workingdirectory": "cwd", "working_directory": "cwd",
	"arguments": "args", "argv": "args", "program": "command", "exec": "command", "executable": "command",
	"endpoint": "url", "address": "url", "href": "url", "dotenv": "envFile", "env_file": "envFile", "enable": "enabled", "disable": "disabled",
	"timeoutms": "timeout", "timeout_ms": "timeout", "always_allow": "alwaysAllow", "header": "headers",
}

// command reads a program; a list of a program and its arguments; or an object of both, as older versions of Zed write it.
func (e *entry) command(_ string, n *node) {
	switch n.kind {
	case arrayNode:
		var words []string
		e.strings("command", n, &words)
		if len(words) > 0 {
			e.s.Command, e.s.Args = words[0], append(words[1:], e.s.Args...)
		}
		for i, item := range n.items {
			if i > 0 {
				e.place(fmt.Sprintf("args[%d]", i-1), item)
			}
		}
	case objectNode:
		for _, m := range n.members {
			switch m.key.text {
			case "path":
				e.string("command", m.value, &e.s.Command)
			case "args":
				e.strings("args", m.value, &e.s.Args)
			case "env":
				e.env("env", m.value)
			default:
				e.unknown("command."+m.key.text, m.key.at, suggest(m.key.text, []string{"path", "args", "env"}), "the key means nothing to dowel")
			}
		}
	default:
		e.string("command", n, &e.s.Command)
	}
}

func (e *entry) env(_ string, n *node) {
	e.stringMap("env", n, &e.s.Env)
	for _, m := range n.members {
		if name := m.key.text; name == "" || strings.ContainsAny(name, "=\x00") {
			e.errorf(m.key.at, "correct the name", "env has a variable called %q: a name is not empty and holds no =", name)
		}
	}
}

// envKeys are names of secrets that goose keeps elsewhere: dowel takes them from its environment.
func (e *entry) envKeys(key string, n *node) {
	var names []string
	e.strings(key, n, &names)
	for _, name := range names {
		if _, ok := e.s.Env[name]; !ok {
			put(&e.s.Env, name, "${"+name+"}")
			e.place("env."+name, n)
		}
	}
}

// passEnv reads a list of names, or of objects that have one.
func (e *entry) passEnv(key string, n *node) {
	e.place(key, n)
	if !e.expect(key, n, arrayNode) {
		return
	}
	for i, item := range n.items {
		if name := item.member("name"); item.is(objectNode) && name != nil {
			item = name
		}
		if text, ok := e.word(fmt.Sprintf("%s[%d]", key, i), item); ok {
			e.s.PassEnv = append(e.s.PassEnv, text)
		}
	}
}

func (e *entry) sandbox(key string, n *node) {
	if n.kind != boolNode || n.text == "true" {
		e.unknown(key, n.at, "", "dowel does not start servers in a sandbox")
	}
}

// dev is how VS Code watches the files of a server that is being written.
func (e *entry) dev(_ string, n *node) {
	if e.expect("dev", n, objectNode) && n.member("watch") != nil {
		e.watch("dev.watch", n.member("watch"))
	}
}

func (e *entry) watch(key string, n *node) {
	if n.kind == stringNode {
		n = &node{kind: arrayNode, items: []*node{n}, at: n.at}
	}
	e.strings("watchPaths", n, &e.s.WatchPaths)
}

func (e *entry) auth(_ string, n *node) {
	if n.kind == objectNode { // Cursor; elsewhere it is a word that says what is found out anyway
		e.oauth("oauth", n)
	}
}

func (e *entry) noOAuth(key string, n *node) {
	off := false
	if e.flag(key, n, &off); off {
		e.oauth(key, &node{kind: boolNode, text: "false", at: n.at})
	}
}

func (e *entry) enabled(key string, n *node) {
	on := true
	e.flag(key, n, &on)
	e.place("disabled", n)
	e.s.Disabled = e.s.Disabled || !on
}

// options is where TBXark's proxy keeps what is about one server.
func (e *entry) options(_ string, n *node) {
	if !e.expect("options", n, objectNode) {
		return
	}
	if required := n.member("panicIfInvalid"); required != nil {
		e.flag("required", required, &e.s.Required)
	}
	if filter := n.member("toolFilter"); filter.is(objectNode) && filter.member("list") != nil {
		if mode := filter.member("mode"); mode != nil && mode.text == "block" {
			e.hide("options.toolFilter.list", filter.member("list"))
		} else {
			e.only("options.toolFilter.list", filter.member("list"))
		}
	}
}

func (e *entry) allow(_ string, n *node) { e.strings("alwaysAllow", n, &e.s.AlwaysAllow) }

func (e *entry) trust(_ string, n *node) {
	all := false
	if e.flag("alwaysAllow", n, &all); all {
		e.s.AlwaysAllow = []string{"*"}
	}
}

func (e *entry) sharing(key string, n *node) {
	var text string
	e.string(key, n, &text)
	all := []string{string(hub.Shared), string(hub.SharePerClient), string(hub.SharePerSession)}
	if n.kind == stringNode && !slices.Contains(all, text) {
		e.errorf(n.at, choose(text, all), "sharing cannot be %q", text)
		return
	}
	e.s.Sharing = hub.Sharing(text)
}

func (e *entry) revision(_ string, n *node) {
	var text string
	e.string("revision", n, &text)
	all := []string{"auto", "legacy", "modern"}
	for _, r := range mcp.Revisions() {
		all = append(all, string(r))
	}
	switch {
	case n.kind != stringNode || text == "auto":
	case slices.Contains(all, text):
		e.s.Revision = text
	default:
		e.errorf(n.at, choose(text, all), "there is no protocol revision %q", text)
	}
}
