package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
)

// fieldReaders read the keys of an entry: the union of the keys of all tools. If the meaning of a
// key depends on the tool, its function looks at the dialect.
var fieldReaders = map[string]func(e *entryReader, key string, n *node){
	"type": (*entryReader).readType, "transport": (*entryReader).readType, "transportType": (*entryReader).readType,

	"command": (*entryReader).readCommand, "cmd": (*entryReader).readCommand,
	"args": func(e *entryReader, _ string, n *node) { e.readStrings("args", n, &e.s.Args) },
	"env":  (*entryReader).readEnv, "environment": (*entryReader).readEnv, "envs": (*entryReader).readEnv,
	"env_keys": (*entryReader).readEnvKeys, "env_vars": (*entryReader).readPassEnv,
	"cwd":            func(e *entryReader, _ string, n *node) { e.readString("cwd", n, &e.s.Dir) },
	"envFile":        func(e *entryReader, _ string, n *node) { e.readString("envFile", n, &e.s.EnvFile) },
	"sandbox":        (*entryReader).readSandbox,
	"sandboxEnabled": (*entryReader).readSandbox,
	"dev":            (*entryReader).readDev,
	"watchPaths":     (*entryReader).readWatchPaths,

	"url": (*entryReader).readURL, "serverUrl": (*entryReader).readURL, "uri": (*entryReader).readURL, "httpUrl": (*entryReader).readURL,
	"headers": (*entryReader).readHeaders, "http_headers": (*entryReader).readHeaders,
	"env_http_headers":     (*entryReader).readEnvHeaders,
	"bearer_token_env_var": (*entryReader).readBearerVariable,
	"headersHelper":        func(e *entryReader, _ string, n *node) { e.readString("headersHelper", n, &e.s.HeadersHelper) },
	"oauth":                func(e *entryReader, _ string, n *node) { e.readOAuth("oauth", n) },
	"auth":                 (*entryReader).readAuth,
	"noOAuth":              (*entryReader).readNoOAuth,
	"oauthClientId":        func(e *entryReader, _ string, n *node) { e.readOAuthString("clientId", n) },
	"oauthClientSecret":    func(e *entryReader, _ string, n *node) { e.readOAuthString("clientSecret", n) },
	"oauthScopes":          func(e *entryReader, _ string, n *node) { e.readScopes("oauthScopes", n) },
	"oauth_resource":       func(e *entryReader, _ string, n *node) { e.readOAuthString("resource", n) },
	"scopes":               func(e *entryReader, _ string, n *node) { e.readScopes("scopes", n) },

	"disabled": func(e *entryReader, _ string, n *node) { e.readBool("disabled", n, &e.s.Disabled) },
	"enabled":  (*entryReader).readEnabled,
	"required": func(e *entryReader, _ string, n *node) { e.readBool("required", n, &e.s.Required) },

	"disabledTools": (*entryReader).readHiddenTools, "excludeTools": (*entryReader).readHiddenTools, "disabled_tools": (*entryReader).readHiddenTools, "excludedTools": (*entryReader).readHiddenTools,
	"includeTools": (*entryReader).readOnlyTools, "enabled_tools": (*entryReader).readOnlyTools, "allowedTools": (*entryReader).readOnlyTools, "available_tools": (*entryReader).readOnlyTools,
	"tools":   (*entryReader).readTools,
	"options": (*entryReader).readOptions,

	"alwaysAllow": (*entryReader).readAlwaysAllow, "autoApprove": (*entryReader).readAlwaysAllow,
	"trust": (*entryReader).readTrust,
	"trustAnnotations": func(e *entryReader, _ string, n *node) {
		e.readBool("trustAnnotations", n, &e.s.TrustAnnotations)
	},

	"timeout":             (*entryReader).readTimeout,
	"startup_timeout_sec": (*entryReader).readSeconds, "tool_timeout_sec": (*entryReader).readSeconds,
	"startup_timeout_ms": (*entryReader).readMilliseconds, "connectionTimeout": (*entryReader).readMilliseconds, "requestTimeout": (*entryReader).readMilliseconds,
	"installTimeout": func(e *entryReader, _ string, n *node) {
		e.readDuration("installTimeout", n, e.d.timeout, &e.s.Install)
	},
	"startTimeout": func(e *entryReader, _ string, n *node) { e.readDuration("startTimeout", n, e.d.timeout, &e.s.Start) },
	"idleTimeout":  func(e *entryReader, _ string, n *node) { e.readDuration("idleTimeout", n, e.d.timeout, &e.s.Idle) },
	"idleStop":     func(e *entryReader, _ string, n *node) { e.readDuration("idleStop", n, e.d.timeout, &e.s.IdleStop) },

	"sharing":      (*entryReader).readSharing,
	"definitions":  (*entryReader).readDefinitions,
	"lazy":         func(e *entryReader, _ string, n *node) { e.readBool("lazy", n, &e.s.Lazy) },
	"keepDetached": func(e *entryReader, _ string, n *node) { e.readBool("keepDetached", n, &e.s.KeepDetached) },
	"serialize":    func(e *entryReader, _ string, n *node) { e.readBool("serialize", n, &e.s.Serialize) },
	"revision":     (*entryReader).readRevision, "protocolEra": (*entryReader).readRevision,
}

// ignoredKeys are keys without an effect in dowel: descriptions for people, the origin of an entry,
// and whether a tool list is loaded eagerly.
var ignoredKeys = []string{
	"name", "description", "display_name", "displayName", "title", "icon", "gallery", "version", "source", "bundled", "metadata",
	"alwaysLoad", "deferTools", "settings",
}

// commonMistakes are keys that are often written instead of others but are not similar to them.
var commonMistakes = map[string]string{
	"dir": "cwd", "workdir": "cwd", "workingdirectory": "cwd", "working_directory": "cwd",
	"arguments": "args", "argv": "args", "program": "command", "exec": "command", "executable": "command",
	"endpoint": "url", "address": "url", "href": "url", "dotenv": "envFile", "env_file": "envFile", "enable": "enabled", "disable": "disabled",
	"timeoutms": "timeout", "timeout_ms": "timeout", "always_allow": "alwaysAllow", "header": "headers",
}

// readCommand reads a program, a list of a program and its arguments, or an object of both (older
// versions of Zed).
func (e *entryReader) readCommand(_ string, n *node) {
	switch n.kind {
	case arrayNode:
		var words []string
		e.readStrings("command", n, &words)
		if len(words) > 0 {
			e.s.Command, e.s.Args = words[0], append(words[1:], e.s.Args...)
		}
		for i, item := range n.items {
			if i > 0 {
				e.recordPosition(fmt.Sprintf("args[%d]", i-1), item)
			}
		}
	case objectNode:
		for _, m := range n.members {
			switch m.key.text {
			case "path":
				e.readString("command", m.value, &e.s.Command)
			case "args":
				e.readStrings("args", m.value, &e.s.Args)
			case "env":
				e.readEnv("env", m.value)
			default:
				e.addUnknown("command."+m.key.text, m.key.at, suggestName(m.key.text, []string{"path", "args", "env"}), "dowel does not know this key")
			}
		}
	default:
		e.readString("command", n, &e.s.Command)
	}
}

// readEnv reads the environment and checks the names.
func (e *entryReader) readEnv(_ string, n *node) {
	e.readStringMap("env", n, &e.s.Env)
	for _, m := range n.members {
		if name := m.key.text; name == "" || strings.ContainsAny(name, "=\x00") {
			e.errorf(m.key.at, "correct the name", "env has a variable called %q: a name is not empty and holds no =", name)
		}
	}
}

// readEnvKeys reads the names of secrets that goose keeps elsewhere. dowel takes them from its
// environment.
func (e *entryReader) readEnvKeys(key string, n *node) {
	var names []string
	e.readStrings(key, n, &names)
	for _, name := range names {
		if _, ok := e.s.Env[name]; !ok {
			setKey(&e.s.Env, name, "${"+name+"}")
			e.recordPosition("env."+name, n)
		}
	}
}

// readPassEnv reads a list of names, or of objects with a name.
func (e *entryReader) readPassEnv(key string, n *node) {
	e.recordPosition(key, n)
	if !e.expectKind(key, n, arrayNode) {
		return
	}
	for i, item := range n.items {
		if name := item.member("name"); item.is(objectNode) && name != nil {
			item = name
		}
		if text, ok := e.readWord(fmt.Sprintf("%s[%d]", key, i), item); ok {
			e.s.PassEnv = append(e.s.PassEnv, text)
		}
	}
}

// readSandbox warns that dowel has no sandbox.
func (e *entryReader) readSandbox(key string, n *node) {
	if n.kind != boolNode || n.text == "true" {
		e.addUnknown(key, n.at, "", "dowel does not start servers in a sandbox")
	}
}

// readDev reads VS Code's settings for servers under development.
func (e *entryReader) readDev(_ string, n *node) {
	if e.expectKind("dev", n, objectNode) && n.member("watch") != nil {
		e.readWatchPaths("dev.watch", n.member("watch"))
	}
}

// readWatchPaths reads a list of patterns, or a single one.
func (e *entryReader) readWatchPaths(key string, n *node) {
	if n.kind == stringNode {
		n = &node{kind: arrayNode, items: []*node{n}, at: n.at}
	}
	e.readStrings("watchPaths", n, &e.s.WatchPaths)
}

func (e *entryReader) readAuth(_ string, n *node) {
	if n.kind == objectNode { // Cursor; elsewhere auth is a word without effect
		e.readOAuth("oauth", n)
	}
}

func (e *entryReader) readNoOAuth(key string, n *node) {
	off := false
	if e.readBool(key, n, &off); off {
		e.readOAuth(key, &node{kind: boolNode, text: "false", at: n.at})
	}
}

func (e *entryReader) readEnabled(key string, n *node) {
	on := true
	e.readBool(key, n, &on)
	e.recordPosition("disabled", n)
	e.s.Disabled = e.s.Disabled || !on
}

// readOptions reads the per-server settings of TBXark's proxy.
func (e *entryReader) readOptions(_ string, n *node) {
	if !e.expectKind("options", n, objectNode) {
		return
	}
	if required := n.member("panicIfInvalid"); required != nil {
		e.readBool("required", required, &e.s.Required)
	}
	if filter := n.member("toolFilter"); filter.is(objectNode) && filter.member("list") != nil {
		if mode := filter.member("mode"); mode != nil && mode.text == "block" {
			e.readHiddenTools("options.toolFilter.list", filter.member("list"))
		} else {
			e.readOnlyTools("options.toolFilter.list", filter.member("list"))
		}
	}
}

func (e *entryReader) readAlwaysAllow(_ string, n *node) {
	e.readStrings("alwaysAllow", n, &e.s.AlwaysAllow)
}

// readTrust reads Gemini's trust, which allows all tools.
func (e *entryReader) readTrust(_ string, n *node) {
	all := false
	if e.readBool("alwaysAllow", n, &all); all {
		e.s.AlwaysAllow = []string{"*"}
	}
}

func (e *entryReader) readSharing(key string, n *node) {
	var text string
	e.readString(key, n, &text)
	all := []string{string(hub.Shared), string(hub.SharePerClient), string(hub.SharePerSession), string(ShareInCluster)}
	if n.kind == stringNode && !slices.Contains(all, text) {
		e.errorf(n.at, suggestOrList(text, all), "sharing cannot be %q", text)
		return
	}
	e.s.Sharing = hub.Sharing(text)
}

func (e *entryReader) readRevision(_ string, n *node) {
	var text string
	e.readString("revision", n, &text)
	all := []string{"auto", "legacy", "modern"}
	for _, r := range mcp.Revisions() {
		all = append(all, string(r))
	}
	switch {
	case n.kind != stringNode || text == "auto":
	case slices.Contains(all, text):
		e.s.Revision = text
	default:
		e.errorf(n.at, suggestOrList(text, all), "unknown protocol revision %q", text)
	}
}
