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
)

// Definition is a server with nothing left to look up: what a hub starts.
type Definition struct {
	// Server is the entry as it is written.
	Server *Server
	// Spec has its variables replaced, EnvFile read into Env, and paths made absolute. A server of a project that has no cwd runs
	// in the project's folder.
	Spec
	// Values tell of each value where it came from.
	Values []Value
	// Secrets are the values that must not be shown: what came from variables into env, headers, url, args, headersHelper and
	// oauth; and what stands under names such as API_KEY.
	Secrets []string

	masker *strings.Replacer
}

// Value is one value of a [Definition], and where it came from.
type Value struct {
	// Field names it: "command", "args[1]", "env.TOKEN", "headers.Authorization", "timeout".
	Field string
	// Written is what stands in the file, Value what became of it.
	Written, Value string
	At             Position
	// From names the variables, such as "environment variable TOKEN".
	From []string
	// Secret: the value is not to be shown.
	Secret bool
}

// Resolve expands the variables of the server. It returns nil where there is an error among the problems. A problem that has
// a Variable means that the server needs configuration.
func (s *Server) Resolve(v Variables) (*Definition, []Problem) {
	if !s.Valid() {
		return nil, slices.Clone(s.Problems)
	}
	d, problems := s.resolve(v)
	if fatal(problems) {
		return nil, problems
	}
	return d, problems
}

// resolver resolves one server.
type resolver struct {
	*Definition
	x        expansion
	problems []Problem
	lacking  map[string]bool // fields of which a variable has no value
}

// resolve does what it can.
func (s *Server) resolve(v Variables) (*Definition, []Problem) {
	r := &resolver{
		Definition: &Definition{Server: s, Spec: s.Spec.clone()},
		x:          expansion{v: v.complete(), inputs: s.inputs, bare: s.dialect().bareVariables},
		lacking:    map[string]bool{},
	}
	r.each(r.value)
	r.passEnv()
	r.paths()
	r.envFile()
	r.check()
	slices.Sort(r.Secrets)
	r.Secrets = slices.Compact(r.Secrets)
	r.masker = masker(r.Secrets)
	return r.Definition, r.problems
}

func (s *Server) dialect() *Dialect {
	if d := lookupDialect(s.Dialect); d != nil {
		return d
	}
	return dialects[0]
}

func (r *resolver) errorf(field, hint, format string, args ...any) {
	r.problems = append(r.problems, Problem{Severity: Error, Position: r.Server.Where(field), Server: r.Server.Name, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// value expands one string, and records what became of it.
func (r *resolver) value(field, text string) string {
	r.x.used, r.x.missing = nil, nil
	value := Value{Field: field, Written: text, Value: r.x.text(text), At: r.Server.Where(field)}
	for _, m := range r.x.missing {
		r.problems = append(r.problems, m.problem(value.At, field, r.Server.Name))
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
	r.record(value, secrets)
	return value.Value
}

func mayHoldSecrets(field string) bool {
	for _, group := range []string{"args[", "env.", "headers.", "url", "headersHelper", "oauth."} {
		if strings.HasPrefix(field, group) {
			return true
		}
	}
	return false
}

func (r *resolver) record(v Value, secrets []string) {
	for _, secret := range secrets {
		if secret != "" {
			v.Secret = true
			r.Secrets = append(r.Secrets, secret)
		}
	}
	r.Values = append(r.Values, v)
}

// passEnv hands on what is set.
func (r *resolver) passEnv() {
	for _, name := range r.PassEnv {
		value, ok := r.x.v.Env(name)
		if _, given := r.Env[name]; !ok || given {
			continue
		}
		put(&r.Env, name, value)
		var secrets []string
		if !public(name) {
			secrets = []string{value}
		}
		r.record(Value{Field: "env." + name, Value: value, At: r.Server.Where("env_vars"), From: []string{"environment variable " + name}}, secrets)
	}
}

// paths makes paths absolute: those of a project from its folder, those of the user from the folder of the file.
func (r *resolver) paths() {
	folder := filepath.Dir(r.Server.Path)
	if r.Server.Scope == Project {
		folder = r.x.v.Workspace
	}
	if r.Dir != "" || r.Server.Scope == Project && r.Kind == Stdio {
		r.Dir = r.absolute(r.Dir, folder)
	}
	if r.Dir != "" {
		folder = r.Dir
	}
	if r.EnvFile != "" {
		r.EnvFile = r.absolute(r.EnvFile, folder)
	}
	for i, path := range r.WatchPaths {
		r.WatchPaths[i] = r.absolute(path, folder)
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

func (r *resolver) absolute(path, folder string) string {
	path = r.x.v.home(path)
	if filepath.IsAbs(path) || folder == "" {
		return path
	}
	return filepath.Join(folder, path)
}

// envFile reads the file into the environment, behind what the entry says itself.
func (r *resolver) envFile() {
	if r.EnvFile == "" || r.lacks("envFile") || r.lacks("cwd") {
		return
	}
	text, err := r.x.v.ReadFile(r.EnvFile)
	if err == nil && len(text) > maxValue {
		err = fmt.Errorf("it has more than %d MiB", maxValue>>20)
	}
	if err != nil {
		r.problems = append(r.problems, missing{"file:" + r.EnvFile, fmt.Sprintf("the file %s cannot be read: %s", r.EnvFile, reason(err)),
			"create it, or correct the path"}.problem(r.Server.Where("envFile"), "envFile", r.Server.Name))
		return
	}
	lines, problems := parseEnvFile(r.EnvFile, string(text))
	for _, p := range problems {
		p.Server = r.Server.Name
		r.problems = append(r.problems, p)
	}
	r.lines(lines)
}

func (r *resolver) lines(lines []envLine) {
	for i, line := range lines {
		_, given := r.Env[line.name]
		later := slices.ContainsFunc(lines[i+1:], func(l envLine) bool { return l.name == line.name })
		if given || later { // of a name that is there twice the last one counts
			continue
		}
		put(&r.Env, line.name, line.value)
		field := "env." + line.name
		secrets := secretsIn(field, line.value, nil)
		if len(line.value) >= 8 { // such a file is where secrets are kept; what is short is hardly one
			secrets = append(secrets, line.value)
		}
		r.record(Value{Field: field, Written: line.value, Value: line.value, At: line.at, From: []string{"envFile"}}, secrets)
	}
}

// lacks reports whether a variable of the field has no value, which has been reported.
func (r *resolver) lacks(field string) bool { return r.lacking[field] }

// check looks at what only the values can tell.
func (r *resolver) check() {
	if r.Kind == Stdio {
		if strings.TrimSpace(r.Command) == "" && !r.lacks("command") {
			r.errorf("command", "give the variable a value", "command is empty once its variables have their values")
		}
		words := r.words()
		for _, field := range slices.Sorted(maps.Keys(words)) {
			if strings.ContainsRune(words[field], 0) {
				r.errorf(field, "remove it", "%s holds a NUL byte, which no program can be given", field)
			}
		}
		return
	}
	r.URL = strings.TrimSpace(r.URL)
	if why := badURL(r.URL); why != "" && !r.lacks("url") {
		r.errorf("url", "write a URL such as https://example.com/mcp", "url %s", why)
	}
	table("headers", r.Headers, func(field, text string) string {
		if strings.ContainsFunc(text, func(c rune) bool { return unicode.IsControl(c) && c != '\t' }) {
			r.errorf(field, "remove it", "%s holds a control character, such as a line break", field)
		}
		return text
	})
}

func (r *resolver) words() map[string]string {
	all := map[string]string{"command": r.Command}
	for i, text := range r.Args {
		all[fmt.Sprintf("args[%d]", i)] = text
	}
	for name, text := range r.Env {
		all["env."+name] = text
	}
	return all
}

// argIndex is the n of args[n], or -1.
func argIndex(field string) int {
	i, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(field, "args["), "]"))
	if err != nil {
		return -1
	}
	return i
}

// Mask replaces the server's secrets in a text by ****. Values that are too short or too common to be recognised stay.
func (d *Definition) Mask(text string) string { return d.masker.Replace(text) }

// Mask replaces what stands in the entry itself, and looks like a secret, in a text by ****: for one that cannot be resolved.
func (s *Server) Mask(text string) string {
	d, _ := s.resolve(nothing)
	return d.Mask(text)
}

// nothing has no values: what is left is what stands in the entry itself.
var nothing = Variables{
	Env: func(string) (string, bool) { return "", false }, ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist },
}

// Fingerprint tells whether a running server still is what the configuration says: two definitions with the same one need no
// restart. It covers what the process or the connection was made from: kind, command, args, the environment that is given, cwd,
// URL, headers, the headers' helper, login, sharing, serialize and revision. It does not cover what applies to a running server
// as well: whether it is disabled or required, timeouts, tool rules, alwaysAllow, lazy, idleStop and watchPaths. It is made from
// secrets: keep it to the process.
func (d *Definition) Fingerprint() string {
	sharing := d.Sharing
	if sharing == "" {
		sharing = hub.Shared
	}
	return hash(map[string]any{
		"kind": d.Kind, "command": d.Command, "args": d.Args, "env": d.Env, "dir": d.Dir, "url": d.URL, "headers": d.Headers,
		"helper": d.HeadersHelper, "oauth": d.OAuth, "sharing": sharing, "serialize": d.Serialize, "revision": d.Revision,
	})
}

func hash(v any) string {
	text, err := json.Marshal(v) // which sorts the keys
	if err != nil {
		panic(fmt.Sprintf("config: strings and maps of strings have no JSON: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
