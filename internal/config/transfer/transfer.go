// Package transfer turns entries of one tool's configuration into those of another: what is imported becomes an entry of
// dowel's own file, and a dowel becomes an entry of any tool's.
package transfer

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
)

// Entry returns a server, of whatever tool, as an entry of dowel's own file. Variables stay variables.
//
// In the user's file an entry counts in every folder: there, ${workspaceFolder} becomes the folder of the project, and relative
// paths of a project's file become absolute, from that folder. project is empty for an entry of the project's own file, where
// all of that stays as it is.
func Entry(s *config.Server, project string) edit.Object {
	e := entry{bare: s.Dialect == "gemini", project: project}
	spec := s.Spec
	if s.Scope == config.Project && spec.Kind == config.Stdio && project != "" {
		if spec.Dir == "" || !filepath.IsAbs(spec.Dir) {
			spec.Dir = filepath.Join(project, spec.Dir)
		}
	}
	if spec.Kind != config.Stdio && spec.Kind != config.Auto {
		e.add("type", string(spec.Kind))
	}
	e.text("command", spec.Command)
	e.texts("args", spec.Args)
	e.table("env", spec.Env)
	e.text("envFile", spec.EnvFile)
	e.text("cwd", spec.Dir)
	e.text("url", spec.URL)
	e.table("headers", spec.Headers)
	e.text("headersHelper", spec.HeadersHelper)
	e.flag("disabled", spec.Disabled)
	e.duration("startTimeout", spec.Start)
	e.duration("idleTimeout", spec.Idle)
	e.duration("timeout", spec.Total)
	e.tools(spec.Tools)
	e.texts("alwaysAllow", spec.AlwaysAllow)
	e.texts("watchPaths", spec.WatchPaths)
	e.flag("lazy", spec.Lazy)
	e.duration("idleStop", spec.IdleStop)
	e.flag("serialize", spec.Serialize)
	e.text("revision", spec.Revision)
	if spec.Sharing != "" && spec.Sharing != hub.Shared {
		e.add("sharing", string(spec.Sharing))
	}
	return e.members
}

// entry is one that is being made.
type entry struct {
	members edit.Object
	bare    bool   // $NAME is a variable too
	project string // the folder that is written in place of its variable; empty: the variable stays
}

func (e *entry) add(key string, value any) {
	e.members = append(e.members, edit.Member{Key: key, Value: value})
}

var bareVariable = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)

// own returns a text with its variables in the form of dowel's file.
func (e *entry) own(text string) string {
	if e.bare {
		text = bareVariable.ReplaceAllString(text, "$${$1}")
	}
	if e.project != "" {
		text = e.settle(text)
	}
	return text
}

// projectVariable is a variable for the project's folder, or what only looks like one; and what stands behind it. A file that
// is named from that folder is the third.
var projectVariable = regexp.MustCompile(`\$?\$\{(?:workspaceFolder(Basename)?(?::-[^{}]*)?|file:([^{}~]+))\}([/\\]?)`)

// settle writes the project's folder in place of its variables.
func (e *entry) settle(text string) string {
	return projectVariable.ReplaceAllStringFunc(text, func(found string) string {
		m := projectVariable.FindStringSubmatch(found)
		folder := strings.ReplaceAll(e.project, "${", "$${")
		switch {
		case strings.HasPrefix(found, "$$"):
			return found // a text, and no variable
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

func (e *entry) text(key, text string) {
	if text != "" {
		e.add(key, e.own(text))
	}
}

func (e *entry) texts(key string, all []string) {
	if len(all) == 0 {
		return
	}
	var values []any
	for _, text := range all {
		values = append(values, e.own(text))
	}
	e.add(key, values)
}

func (e *entry) table(key string, all map[string]string) {
	if len(all) == 0 {
		return
	}
	var members edit.Object
	for _, name := range slices.Sorted(maps.Keys(all)) {
		members = append(members, edit.Member{Key: name, Value: e.own(all[name])})
	}
	e.add(key, members)
}

func (e *entry) flag(key string, on bool) {
	if on {
		e.add(key, true)
	}
}

func (e *entry) duration(key string, d time.Duration) {
	if d > 0 {
		e.add(key, d.String())
	}
}

func (e *entry) tools(t hub.ToolRules) {
	inner := entry{}
	inner.texts("only", t.Only)
	inner.texts("hide", t.Hide)
	inner.table("rename", t.Rename)
	inner.table("describe", t.Describe)
	if inner.members != nil {
		e.add("tools", inner.members)
	}
}

// Input returns the declaration of an input in dowel's own file, and where it stands there.
func Input(in config.Input) (path []string, value edit.Object) {
	e := entry{}
	e.add("type", in.Type)
	e.add("id", in.ID)
	e.text("description", in.Description)
	if in.HasDefault {
		e.add("default", in.Default)
	}
	e.flag("password", in.Password)
	e.texts("options", in.Options)
	return []string{"inputs", "[id=" + in.ID + "]"}, e.members
}

// Path returns where the entry of a server stands in a tool's file.
func Path(d config.Dialect, name string) []string {
	if listed[d.Name] {
		name = fmt.Sprintf("[name=%s]", name)
	}
	return append(slices.Clone(d.Key), name)
}

// listed are the tools whose servers are a list of objects with names.
var listed = map[string]bool{"continue": true, "vibe": true}

// Command returns the entry of a tool's file for a server that is started by a command, and spoken to over stdio.
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
