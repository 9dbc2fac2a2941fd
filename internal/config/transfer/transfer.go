// Package transfer converts entries between the configuration files of different tools. [Entry]
// converts a server of any tool to an entry of dowel's own file, for importing. [Command] creates
// the entry of any tool's file that starts dowel.
//
//	path := transfer.Path(dialect, "dowel")
//	entry := transfer.Command(dialect, "dowel", "dowel", "up", "--stdio")
//	text, err = edit.Set(text, format, path, entry)
package transfer

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// Entry converts a server of any tool to an entry of dowel's own file. Variables stay variables.
//
// An entry in the user's file applies in every folder. For such an entry, project is the folder of
// the server's project: ${workspaceFolder} is replaced by it, and relative paths of a project's
// file become absolute. For an entry in the project's own file, project is empty and both stay as
// written.
func Entry(s *config.Server, project string) edit.Object {
	e := entryWriter{bare: s.HasBareVariables(), project: project}
	spec := s.Spec
	if s.Scope == config.Project && spec.Kind == config.Stdio && project != "" {
		if spec.Dir == "" || !filepath.IsAbs(spec.Dir) {
			spec.Dir = filepath.Join(project, spec.Dir)
		}
	}
	if spec.Kind != config.Stdio && spec.Kind != config.Auto {
		e.addMember("type", string(spec.Kind))
	}
	e.addText("command", spec.Command)
	e.addTexts("args", spec.Args)
	e.addTable("env", spec.Env)
	e.addText("envFile", spec.EnvFile)
	e.addText("cwd", spec.Dir)
	e.addText("url", spec.URL)
	e.addTable("headers", spec.Headers)
	e.addText("headersHelper", spec.HeadersHelper)
	e.addLogin(spec.OAuth)
	e.addFlag("disabled", spec.Disabled)
	e.addDuration("startTimeout", spec.Start)
	e.addDuration("installTimeout", spec.Install)
	e.addDuration("idleTimeout", spec.Idle)
	e.addDuration("timeout", spec.Total)
	e.addTools(spec.Tools)
	e.addTexts("alwaysAllow", spec.AlwaysAllow)
	e.addFlag("trustAnnotations", spec.TrustAnnotations)
	e.addTexts("watchPaths", spec.WatchPaths)
	e.addFlag("lazy", spec.Lazy)
	e.addDuration("idleStop", spec.IdleStop)
	e.addFlag("keepDetached", spec.KeepDetached)
	e.addFlag("serialize", spec.Serialize)
	e.addText("definitions", spec.Definitions)
	e.addText("revision", spec.Revision)
	if spec.Sharing != "" && spec.Sharing != hub.Shared {
		e.addMember("sharing", string(spec.Sharing))
	}
	return e.members
}

// entryWriter collects the members of an entry.
type entryWriter struct {
	members edit.Object
	bare    bool   // $NAME is a variable too
	project string // the folder that replaces ${workspaceFolder}; "" keeps the variable
}

func (e *entryWriter) addMember(key string, value any) {
	e.members = append(e.members, edit.Member{Key: key, Value: value})
}

var bareVariable = lazyregexp.New(`\$([A-Za-z_][A-Za-z0-9_]*)`)

// convertVariables rewrites the variables of a text in the form of dowel's file.
func (e *entryWriter) convertVariables(text string) string {
	if e.bare {
		text = bareVariable().ReplaceAllString(text, "$${$1}")
	}
	if e.project != "" {
		text = e.insertProject(text)
	}
	return text
}

// projectVariable matches ${workspaceFolder}, ${workspaceFolderBasename} and ${file:PATH}, each
// with the separator after it. A match that begins with $$ is escaped text and no variable.
var projectVariable = lazyregexp.New(`\$?\$\{(?:workspaceFolder(Basename)?(?::-[^{}]*)?|file:([^{}~]+))\}([/\\]?)`)

// insertProject replaces the variables of the project's folder by its path or name, and makes a
// relative path in ${file:PATH} absolute.
func (e *entryWriter) insertProject(text string) string {
	return projectVariable().ReplaceAllStringFunc(text, func(found string) string {
		m := projectVariable().FindStringSubmatch(found)
		folder := strings.ReplaceAll(e.project, "${", "$${")
		switch {
		case strings.HasPrefix(found, "$$"):
			return found // an escaped text
		case m[2] != "" && filepath.IsAbs(m[2]):
			return found
		case m[2] != "":
			return "${file:" + filepath.Join(e.project, m[2]) + "}" + m[3]
		case m[1] != "":
			return filepath.Base(folder) + m[3]
		case m[3] != "":
			return strings.TrimRight(folder, `/\`) + m[3]
		}
		return folder
	})
}

// addText adds a string unless it is empty.
func (e *entryWriter) addText(key, text string) {
	if text != "" {
		e.addMember(key, e.convertVariables(text))
	}
}

// addTexts adds a list unless it is empty.
func (e *entryWriter) addTexts(key string, all []string) {
	if len(all) == 0 {
		return
	}
	var values []any
	for _, text := range all {
		values = append(values, e.convertVariables(text))
	}
	e.addMember(key, values)
}

// addTable adds a map, sorted by its keys, unless it is empty.
func (e *entryWriter) addTable(key string, all map[string]string) {
	if len(all) == 0 {
		return
	}
	var members edit.Object
	for _, name := range slices.Sorted(maps.Keys(all)) {
		members = append(members, edit.Member{Key: name, Value: e.convertVariables(all[name])})
	}
	e.addMember(key, members)
}

// addFlag adds true, but not false.
func (e *entryWriter) addFlag(key string, on bool) {
	if on {
		e.addMember(key, true)
	}
}

// addDuration adds a duration unless it is zero.
func (e *entryWriter) addDuration(key string, d time.Duration) {
	if d > 0 {
		e.addMember(key, d.String())
	}
}

func (e *entryWriter) addTools(t hub.ToolRules) {
	inner := entryWriter{}
	inner.addTexts("only", t.Only)
	inner.addTexts("hide", t.Hide)
	inner.addTable("rename", t.Rename)
	inner.addTable("describe", t.Describe)
	if inner.members != nil {
		e.addMember("tools", inner.members)
	}
}

// addLogin adds the login configuration, or the value false if logins are off.
func (e *entryWriter) addLogin(o *config.OAuth) {
	if o == nil {
		return
	}
	if o.Off {
		e.addMember("oauth", false)
		return
	}
	inner := entryWriter{bare: e.bare, project: e.project}
	inner.addText("clientId", o.ClientID)
	inner.addText("clientSecret", o.ClientSecret)
	inner.addText("privateKey", o.PrivateKey)
	inner.addText("clientDocument", o.ClientDocument)
	inner.addTexts("scopes", o.Scopes)
	inner.addText("issuer", o.Issuer)
	inner.addText("metadataUrl", o.MetadataURL)
	inner.addText("authorizationUrl", o.AuthorizationURL)
	inner.addText("tokenUrl", o.TokenURL)
	inner.addText("redirectUri", o.RedirectURI)
	inner.addText("callbackPort", o.CallbackPort)
	inner.addText("resource", o.Resource)
	inner.addTable("params", o.Params)
	if o.PerUser {
		inner.addText("per", config.PerUser)
	}
	inner.addText("exchange", o.Exchange)
	inner.addText("idpTokenUrl", o.IDPTokenURL)
	inner.addText("idpClientId", o.IDPClientID)
	inner.addText("idpClientSecret", o.IDPClientSecret)
	inner.addText("account", o.Account)
	inner.addText("grant", o.Grant)
	inner.addFlag("dpop", o.DPoP)
	inner.addFlag("assumePKCE", o.AssumePKCE)
	if inner.members != nil {
		e.addMember("oauth", inner.members)
	}
}

// Input converts the declaration of an input, and returns its path in dowel's own file.
func Input(in config.Input) (path []string, value edit.Object) {
	e := entryWriter{}
	e.addMember("type", in.Type)
	e.addMember("id", in.ID)
	e.addText("description", in.Description)
	if in.HasDefault {
		e.addMember("default", in.Default)
	}
	e.addFlag("password", in.Password)
	e.addTexts("options", in.Options)
	return []string{"inputs", "[id=" + in.ID + "]"}, e.members
}

// Path returns the path of a server's entry in a tool's file.
func Path(d config.Dialect, name string) []string {
	if listDialects[d.Name] {
		name = fmt.Sprintf("[name=%s]", name)
	}
	return append(slices.Clone(d.Key), name)
}

// listDialects are the tools that keep servers in a list of objects with names.
var listDialects = map[string]bool{"continue": true, "vibe": true}

// Command returns an entry that starts a server over stdio with the given words, in the format of a
// tool's file.
func Command(d config.Dialect, name string, words ...string) edit.Object {
	rest := []any{}
	for _, word := range words[1:] {
		rest = append(rest, word)
	}
	plain := edit.Object{{Key: "command", Value: words[0]}, {Key: "args", Value: rest}}
	typed := append(edit.Object{{Key: "type", Value: "stdio"}}, plain...)
	switch d.Name {
	case "vscode", "crush", "copilot":
		return typed
	case "goose":
		return edit.Object{
			{Key: "name", Value: name}, {Key: "type", Value: "stdio"}, {Key: "cmd", Value: words[0]}, {Key: "args", Value: rest},
			{Key: "enabled", Value: true}, {Key: "timeout", Value: 300},
		}
	case "opencode":
		return edit.Object{{Key: "type", Value: "local"}, {Key: "command", Value: append([]any{words[0]}, rest...)}, {Key: "enabled", Value: true}}
	case "zed":
		return append(edit.Object{{Key: "source", Value: "custom"}}, plain...)
	case "continue":
		return append(edit.Object{{Key: "name", Value: name}}, plain...)
	case "vibe":
		return append(edit.Object{{Key: "name", Value: name}, {Key: "transport", Value: "stdio"}}, plain...)
	}
	return plain
}
