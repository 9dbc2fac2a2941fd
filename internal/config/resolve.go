package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/secretmask"
)

// Definition is a server with all variables expanded, ready to be started.
type Definition struct {
	// Server is the entry as written.
	Server *Server
	// Spec has its variables expanded, EnvFile merged into Env, and paths made absolute. A
	// project's server without a cwd runs in the project's folder.
	Spec
	// Values tell where each value came from.
	Values []Value
	// Secrets are the values that must not be shown: values of variables in env, headers, url,
	// args, headersHelper and oauth, and values with names such as API_KEY.
	Secrets []string

	masker *secretmask.Set
}

// Value is a value of a [Definition] and its origin.
type Value struct {
	// Field is the name of the value: "command", "args[1]", "env.TOKEN", "headers.Authorization",
	// "timeout".
	Field string
	// Written is the text in the file, Value the expanded text.
	Written, Value string
	At             Position
	// From describes the variables, such as "environment variable TOKEN".
	From []string
	// Secret means that the value must not be shown.
	Secret bool
}

// Resolve expands the variables of the server. It returns nil if one of the problems is an error. A
// problem with a Variable means that the server needs configuration.
func (s *Server) Resolve(v Variables) (*Definition, []Problem) {
	if !s.Valid() {
		return nil, slices.Clone(s.Problems)
	}
	d, problems := s.resolveAll(v)
	if hasErrors(problems) {
		return nil, problems
	}
	return d, problems
}

// resolver resolves one server.
type resolver struct {
	*Definition
	x        expansion
	problems []Problem
	lacking  map[string]bool // fields with a variable that has no value
}

// resolveAll resolves the server as far as possible, even if it has errors.
func (s *Server) resolveAll(v Variables) (*Definition, []Problem) {
	r := &resolver{
		Definition: &Definition{Server: s, Spec: s.Spec.clone()},
		x:          expansion{v: v.withDefaults(), inputs: s.inputs, bare: s.findDialect().bareVariables},
		lacking:    map[string]bool{},
	}
	r.eachString(r.resolveValue)
	r.resolvePassEnv()
	r.resolvePaths()
	r.readEnvFile()
	r.checkValues()
	slices.Sort(r.Secrets)
	r.Secrets = slices.Compact(r.Secrets)
	r.masker = secretmask.NewSet(r.Secrets...)
	return r.Definition, r.problems
}

func (s *Server) findDialect() *Dialect {
	if d := lookupDialect(s.Dialect); d != nil {
		return d
	}
	return dialects[0]
}

func (r *resolver) errorf(field, hint, format string, args ...any) {
	r.problems = append(r.problems, Problem{Severity: Error, Position: r.Server.Where(field), Server: r.Server.Name, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// resolveValue expands one string and records its origin.
func (r *resolver) resolveValue(field, text string) string {
	r.x.used, r.x.missing = nil, nil
	value := Value{Field: field, Written: text, Value: r.x.expandText(text), At: r.Server.Where(field)}
	for _, m := range r.x.missing {
		r.problems = append(r.problems, m.toProblem(value.At, field, r.Server.Name))
		value.From = append(value.From, m.message)
		r.lacking[field] = true
	}
	secrets := secretsIn(field, value.Value, r.Args)
	for _, u := range r.x.used {
		value.From = append(value.From, u.from)
		if u.secret && mayHoldSecrets(field) {
			secrets = append(secrets, u.value)
		}
	}
	r.recordValue(value, secrets)
	return value.Value
}

// mayHoldSecrets reports whether variables in a field are treated as secrets.
func mayHoldSecrets(field string) bool {
	for _, group := range []string{"args[", "env.", "headers.", "url", "headersHelper", "oauth."} {
		if strings.HasPrefix(field, group) {
			return true
		}
	}
	return false
}

// recordValue records a value and its secrets.
func (r *resolver) recordValue(v Value, secrets []string) {
	for _, secret := range secrets {
		if secret != "" {
			v.Secret = true
			r.Secrets = append(r.Secrets, secret)
		}
	}
	r.Values = append(r.Values, v)
}

// resolvePassEnv adds the variables of PassEnv that are set.
func (r *resolver) resolvePassEnv() {
	for _, name := range r.PassEnv {
		value, ok := r.x.v.Env(name)
		if _, given := r.Env[name]; !ok || given {
			continue
		}
		setKey(&r.Env, name, value)
		var secrets []string
		if !isPublic(name) {
			secrets = []string{value}
		}
		r.recordValue(Value{Field: "env." + name, Value: value, At: r.Server.Where("env_vars"), From: []string{"environment variable " + name}}, secrets)
	}
}

// resolvePaths makes paths absolute. A project's paths start at its folder, a user's paths at the
// folder of the file.
func (r *resolver) resolvePaths() {
	folder := filepath.Dir(r.Server.Path)
	if r.Server.Scope == Project {
		folder = r.x.v.Workspace
	}
	if r.Dir != "" || r.Server.Scope == Project && r.Kind == Stdio {
		r.Dir = r.absolutePath(r.Dir, folder)
	}
	if r.Dir != "" {
		folder = r.Dir
	}
	if r.EnvFile != "" {
		r.EnvFile = r.absolutePath(r.EnvFile, folder)
	}
	for i, path := range r.WatchPaths {
		r.WatchPaths[i] = r.absolutePath(path, folder)
	}
	for i, v := range r.Values {
		switch v.Field {
		case "cwd":
			r.Values[i].Value = r.Dir
		case "envFile":
			r.Values[i].Value = r.EnvFile
		}
	}
}

func (r *resolver) absolutePath(path, folder string) string {
	path = r.x.v.expandHome(path)
	if filepath.IsAbs(path) || folder == "" {
		return path
	}
	return filepath.Join(folder, path)
}

// readEnvFile adds the variables of EnvFile that the entry does not set itself.
func (r *resolver) readEnvFile() {
	if r.EnvFile == "" || r.isLacking("envFile") || r.isLacking("cwd") {
		return
	}
	text, err := r.x.v.ReadFile(r.EnvFile)
	if err == nil && len(text) > maxValue {
		err = fmt.Errorf("it has more than %d MiB", maxValue>>20)
	}
	if err != nil {
		r.problems = append(r.problems, missingVariable{"file:" + r.EnvFile, fmt.Sprintf("the file %s cannot be read: %s", r.EnvFile, errorWithoutPath(err)),
			"create it, or correct the path"}.toProblem(r.Server.Where("envFile"), "envFile", r.Server.Name))
		return
	}
	lines, problems := parseEnvFile(r.EnvFile, string(text))
	for _, p := range problems {
		p.Server = r.Server.Name
		r.problems = append(r.problems, p)
	}
	r.addEnvLines(lines)
}

// addEnvLines adds the variables of an env file. Variables of the entry itself have precedence.
func (r *resolver) addEnvLines(lines []envLine) {
	for i, line := range lines {
		_, given := r.Env[line.name]
		later := slices.ContainsFunc(lines[i+1:], func(l envLine) bool { return l.name == line.name })
		if given || later { // the last line for a name counts
			continue
		}
		setKey(&r.Env, line.name, line.value)
		field := "env." + line.name
		secrets := secretsIn(field, line.value, nil)
		if len(line.value) >= 8 { // env files usually hold secrets; shorter values are hardly secret
			secrets = append(secrets, line.value)
		}
		r.recordValue(Value{Field: field, Written: line.value, Value: line.value, At: line.at, From: []string{"envFile"}}, secrets)
	}
}

// isLacking reports whether a variable in the field has no value. That was already reported.
func (r *resolver) isLacking(field string) bool { return r.lacking[field] }

// checkValues checks the expanded values.
func (r *resolver) checkValues() {
	if r.Kind == Stdio {
		if strings.TrimSpace(r.Command) == "" && !r.isLacking("command") {
			r.errorf("command", "give the variable a value", "command is empty after its variables are expanded")
		}
		words := r.commandWords()
		for _, field := range slices.Sorted(maps.Keys(words)) {
			if strings.ContainsRune(words[field], 0) {
				r.errorf(field, "remove it", "%s holds a NUL byte, which cannot be passed to a program", field)
			}
		}
		return
	}
	r.URL = strings.TrimSpace(r.URL)
	if why := urlProblem(r.URL, r.Kind); why != "" && !r.isLacking("url") {
		r.errorf("url", urlHint(r.Kind), "url %s", why)
	}
	mapTable("headers", r.Headers, func(field, text string) string {
		if strings.ContainsFunc(text, func(c rune) bool { return unicode.IsControl(c) && c != '\t' }) {
			r.errorf(field, "remove it", "%s holds a control character, such as a line break", field)
		}
		return text
	})
}

// commandWords returns the strings that are passed to the process, by field.
func (r *resolver) commandWords() map[string]string {
	all := map[string]string{"command": r.Command}
	for i, text := range r.Args {
		all[fmt.Sprintf("args[%d]", i)] = text
	}
	for name, text := range r.Env {
		all["env."+name] = text
	}
	return all
}

// argIndex returns n for the field args[n], or -1.
func argIndex(field string) int {
	i, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(field, "args["), "]"))
	if err != nil {
		return -1
	}
	return i
}

// Mask replaces the server's secrets in a text by ****, and all other text that has the form of a
// secret. Secrets that are too short or too common to be recognised stay.
func (d *Definition) Mask(text string) string { return d.masker.Text(text) }

// Mask is [Definition.Mask] for an entry that cannot be resolved. It leaves out the values of
// variables, because they are not known.
func (s *Server) Mask(text string) string {
	d, _ := s.resolveAll(noVariables)
	return d.Mask(text)
}

// Secrets returns the secrets in the text of the entry.
func (s *Server) Secrets() []string {
	d, _ := s.resolveAll(noVariables)
	return d.masker.Secrets()
}

// SecretForms returns the secrets in the text of the entry, in all their forms.
func (s *Server) SecretForms() [][]byte {
	d, _ := s.resolveAll(noVariables)
	return d.masker.Forms()
}

// noVariables leaves all variables without a value, so that only values of the entry itself remain.
var noVariables = Variables{
	Env: func(string) (string, bool) { return "", false }, ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist },
}

// Fingerprint identifies the properties of a server that need a restart when they change: kind,
// command, args, the configured environment, cwd, keepDetached, URL, headers, headers helper,
// login, sharing, serialize and revision. It leaves out properties that apply to a running server:
// disabled, required, timeouts, tool rules, alwaysAllow, trustAnnotations, lazy, idleStop and
// watchPaths. It is derived from secrets, so it must not leave the process.
func (d *Definition) Fingerprint() string {
	sharing := d.Sharing
	if sharing == "" {
		sharing = hub.Shared
	}
	return hashJSON(map[string]any{
		"kind": d.Kind, "command": d.Command, "args": d.Args, "env": d.Env, "dir": d.Dir, "url": d.URL, "headers": d.Headers,
		"helper": d.HeadersHelper, "oauth": d.OAuth, "sharing": sharing, "serialize": d.Serialize, "revision": d.Revision,
		"keepDetached": d.KeepDetached,
	})
}

// hashJSON returns a hash of v's JSON, which sorts the keys of maps.
func hashJSON(v any) string {
	text, err := json.Marshal(v) // sorts the keys
	if err != nil {
		panic(fmt.Sprintf("config: strings and maps of strings have no JSON: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
