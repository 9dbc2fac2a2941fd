package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// TrustHash identifies what a person has agreed to who trusts a server of a project: it changes whenever [Server.TrustFacts] do.
func (s *Server) TrustHash() string { return hash(s.TrustFacts()) }

// TrustFacts are what decides what the server can do, a line each, as it is written: the kind, the command with its arguments, the
// folder, the env file, the URL, the helper for headers, where it logs in; and the names of environment variables and headers, with
// the variables that their values are taken from, but without the values themselves. The exception is variables that make
// programs run other code (PATH, NODE_OPTIONS, LD_PRELOAD and the like), which count with their values. The lines can
// be printed: nothing in them controls a terminal.
func (s *Server) TrustFacts() []string {
	kind := s.Kind
	if kind == "" {
		kind = "unclear"
	}
	facts := []string{"kind " + string(kind)}
	add := func(what, text string) {
		if text != "" {
			facts = append(facts, what+" "+word(text))
		}
	}
	add("command", s.Command)
	if len(s.Args) > 0 {
		facts = append(facts, "args "+strings.Join(words(s.Args), " "))
	}
	add("cwd", s.Dir)
	add("envFile", s.EnvFile)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		facts = append(facts, "env "+word(name)+s.origin(s.Env[name], runsCode(name)))
	}
	for _, name := range slices.Sorted(slices.Values(s.PassEnv)) {
		facts = append(facts, "env "+word(name)+" handed on")
	}
	add("url", s.URL)
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		facts = append(facts, "header "+word(name)+s.origin(s.Headers[name], false))
	}
	add("headersHelper", s.HeadersHelper)
	if o := s.OAuth; o != nil {
		add("login metadata", o.MetadataURL)
		add("login authorization", o.AuthorizationURL)
		add("login token", o.TokenURL)
	}
	return facts
}

// origin tells what variables a value is taken from.
func (s *Server) origin(value string, whole bool) string {
	if whole {
		return " = " + word(value)
	}
	var names []string
	x := expansion{bare: s.dialect().bareVariables, v: Variables{GOOS: "windows"}} // where all forms count
	x.v.Env = func(name string) (string, bool) { names = append(names, name); return "", false }
	x.v.Input = func(in Input) (string, bool) { names = append(names, "input:"+in.ID); return "", true }
	x.v.ReadFile = func(path string) ([]byte, error) { names = append(names, "file:"+path); return nil, nil }
	x.text(value)
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return " from " + strings.Join(words(slices.Compact(names)), ", ")
}

// runsCode reports whether an environment variable can make a harmless command do something else.
func runsCode(name string) bool {
	name = strings.ToUpper(name)
	if strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "NPM_CONFIG_") ||
		strings.HasPrefix(name, "UV_") || strings.HasPrefix(name, "PIP_") || strings.HasPrefix(name, "DOCKER_") {
		return true
	}
	return slices.Contains([]string{"PATH", "NODE_OPTIONS", "NODE_PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "BASH_ENV", "ENV", "SHELL",
		"PERL5OPT", "PERL5LIB", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "PROMPT_COMMAND",
		"EDITOR", "PAGER", "BROWSER", "DENO_DIR", "BUN_OPTIONS", "DOTNET_STARTUP_HOOKS", "HOME", "USERPROFILE", "COMSPEC", "PATHEXT"}, name)
}

// word writes a string so that it is one word of a line.
func word(text string) string {
	plain := text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune("\"'`\\,", r)
	})
	if plain {
		return text
	}
	return strconv.QuoteToGraphic(text)
}

func words(texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = word(text)
	}
	return all
}

// TrustChange compares what was trusted with what stands in the file now: lines of facts that begin with "- " and "+ ".
func TrustChange(before, now []string) []string {
	var lines []string
	for _, fact := range before {
		if !slices.Contains(now, fact) {
			lines = append(lines, fmt.Sprintf("- %s", fact))
		}
	}
	for _, fact := range now {
		if !slices.Contains(before, fact) {
			lines = append(lines, fmt.Sprintf("+ %s", fact))
		}
	}
	return lines
}
