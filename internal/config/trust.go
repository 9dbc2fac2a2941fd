package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// TrustHash identifies the facts to which a user agrees by trusting a project's server. It changes
// whenever [Server.TrustFacts] change.
func (s *Server) TrustHash() string { return hashJSON(s.TrustFacts()) }

// TrustFacts describes everything that decides what the server can do, one fact a line, with
// unexpanded variables: the kind, the command with its arguments, the folder, the env file, the
// URL, the headers helper and the login URLs. For environment variables and headers it lists the
// names and the variables from which their values are taken, but not the values. Exceptions are
// variables that make programs run other code (PATH, NODE_OPTIONS, LD_PRELOAD and similar), which
// are listed with their values. The lines are safe to print on a terminal.
func (s *Server) TrustFacts() []string {
	kind := s.Kind
	if kind == "" {
		kind = "unclear"
	}
	facts := []string{"kind " + string(kind)}
	add := func(what, text string) {
		if text != "" {
			facts = append(facts, what+" "+quoteWord(text))
		}
	}
	add("command", s.Command)
	if len(s.Args) > 0 {
		facts = append(facts, "args "+strings.Join(quoteWords(s.Args), " "))
	}
	add("cwd", s.Dir)
	add("envFile", s.EnvFile)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		facts = append(facts, "env "+quoteWord(name)+s.describeOrigin(s.Env[name], runsCode(name)))
	}
	for _, name := range slices.Sorted(slices.Values(s.PassEnv)) {
		facts = append(facts, "env "+quoteWord(name)+" handed on")
	}
	add("url", s.URL)
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		facts = append(facts, "header "+quoteWord(name)+s.describeOrigin(s.Headers[name], false))
	}
	add("headersHelper", s.HeadersHelper)
	if o := s.OAuth; o != nil {
		add("login metadata", o.MetadataURL)
		add("login authorization", o.AuthorizationURL)
		add("login token", o.TokenURL)
	}
	return facts
}

// describeOrigin names the variables from which a value is taken, or returns the value if whole is
// true.
func (s *Server) describeOrigin(value string, whole bool) string {
	if whole {
		return " = " + quoteWord(value)
	}
	var names []string
	x := expansion{bare: s.findDialect().bareVariables, v: Variables{GOOS: "windows"}} // where all forms count
	x.v.Env = func(name string) (string, bool) { names = append(names, name); return "", false }
	x.v.Input = func(in Input) (string, bool) { names = append(names, "input:"+in.ID); return "", true }
	x.v.ReadFile = func(path string) ([]byte, error) { names = append(names, "file:"+path); return nil, nil }
	x.expandText(value)
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return " from " + strings.Join(quoteWords(slices.Compact(names)), ", ")
}

// runsCode reports whether an environment variable can make a harmless command run other code.
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

// quoteWord quotes a string so that it is a single word of a line.
func quoteWord(text string) string {
	plain := text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune("\"'`\\,", r)
	})
	if plain {
		return text
	}
	return strconv.QuoteToGraphic(text)
}

func quoteWords(texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = quoteWord(text)
	}
	return all
}

// TrustChange compares the trusted facts with the current ones. It returns removed facts with the
// prefix "- " and new facts with "+ ".
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
