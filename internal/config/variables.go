package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// Variables supplies the values of ${…} in strings. [Options.Variables] creates it.
type Variables struct {
	// Env looks up environment variables. The default is os.LookupEnv.
	Env func(string) (string, bool)
	// Home is ${userHome}, and ~ at the start of a path. The default is os.UserHomeDir.
	Home string
	// Workspace is ${workspaceFolder}, the project's folder, or "" without a project.
	Workspace string
	// GOOS decides ${pathSeparator} and whether %VAR% is a variable. The default is the current
	// system.
	GOOS string
	// Input answers ${input:ID}. ok is false without an answer. If the file does not declare the
	// input, only its ID is set. If Input is nil, inputs have their defaults.
	Input func(Input) (string, bool)
	// ReadFile reads the files of ${file:PATH} and envFile. The default reads the file system.
	ReadFile func(path string) ([]byte, error)
}

// maxValue and maxNesting limit the size and the nesting of variables.
const (
	maxValue   = 1 << 20
	maxNesting = 8
)

func (v Variables) withDefaults() Variables {
	o := Options{Home: v.Home, GOOS: v.GOOS, Env: v.Env}.withDefaults()
	v.Home, v.GOOS, v.Env = o.Home, o.GOOS, o.Env
	if v.ReadFile == nil {
		v.ReadFile = func(path string) ([]byte, error) { return readText(path, maxValue) }
	}
	return v
}

// OnRead returns the same variables, but calls read with each file that is read.
func (v Variables) OnRead(read func(path string, text []byte, err error)) Variables {
	v = v.withDefaults()
	file := v.ReadFile
	v.ReadFile = func(path string) ([]byte, error) {
		text, err := file(path)
		read(path, text, err)
		return text, err
	}
	return v
}

// expandHome replaces ~ at the start of a path.
func (v Variables) expandHome(path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") || strings.HasPrefix(path, `~\`) {
		return v.Home + path[1:]
	}
	return path
}

// Expand replaces the variables of a string. missing are the variables without a value, which
// expand to "".
func (v Variables) Expand(text string) (value string, missing []string) {
	x := expansion{v: v.withDefaults()}
	value = x.expandText(text)
	for _, m := range x.missing {
		missing = append(missing, m.variable)
	}
	return value, missing
}

// expansion expands the strings of one server, one after the other.
type expansion struct {
	v      Variables
	inputs []Input
	bare   bool // $VAR is a variable too
	depth  int

	used    []usedVariable
	missing []missingVariable
}

// usedVariable is a variable that had a value.
type usedVariable struct {
	from   string // a description
	value  string
	secret bool
}

// missingVariable is a variable without a value.
type missingVariable struct {
	variable, message, hint string
}

func (m missingVariable) toProblem(at Position, field, server string) Problem {
	return Problem{Severity: Error, Position: at, Server: server, Message: field + ": " + m.message, Hint: m.hint, Variable: m.variable}
}

// expandText expands one string. $${ is an escaped ${.
func (x *expansion) expandText(text string) string {
	var out strings.Builder
	for text != "" {
		i := strings.IndexAny(text, "$%")
		if i < 0 {
			i = len(text)
		}
		out.WriteString(text[:i])
		text = text[i:]
		value, n := x.expandNext(text)
		if isFolder(text[:n]) && len(text) > n && (text[n] == '/' || text[n] == '\\') {
			value = strings.TrimRight(value, `/\`) // a root folder already ends with a separator
		}
		out.WriteString(value)
		text = text[n:]
	}
	return out.String()
}

// isFolder reports whether a variable holds a folder.
func isFolder(variable string) bool {
	return variable == "${workspaceFolder}" || variable == "${userHome}"
}

var (
	bareName    = lazyregexp.New(`^\$([A-Za-z_][A-Za-z0-9_]*)`)
	percentName = lazyregexp.New(`^%([A-Za-z_][A-Za-z0-9_]*)%`)
	plainName   = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// expandNext expands the start of text and returns the length of the expanded part.
func (x *expansion) expandNext(text string) (value string, n int) {
	switch {
	case text == "":
		return "", 0
	case strings.HasPrefix(text, "$${"):
		return "${", 3
	case strings.HasPrefix(text, "${"):
		end := closingBrace(text)
		if end < 0 {
			x.addMissing("${", "a ${ is not closed", "close it with }, or write $${ for ${ itself")
			return "", len(text)
		}
		return x.expandVariable(text[2:end]), end + 1
	}
	if m := bareName().FindStringSubmatch(text); m != nil && x.bare {
		return x.expandEnv(m[1], "", false), len(m[0])
	}
	if m := percentName().FindStringSubmatch(text); m != nil && x.bare && x.v.GOOS == "windows" {
		return x.expandEnv(m[1], "", false), len(m[0])
	}
	return text[:1], 1
}

// closingBrace returns the index of the } that closes the ${ at the start of text, or -1.
func closingBrace(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], "${"):
			depth++
			i++
		case text[i] == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// expandVariable expands the text between ${ and }.
func (x *expansion) expandVariable(body string) string {
	name, fallback, hasFallback := strings.Cut(body, ":-")
	switch {
	case name == "userHome":
		return x.expandKnown("the home folder", x.v.Home, name, fallback)
	case name == "workspaceFolder":
		return x.expandKnown("the project's folder", x.v.Workspace, name, fallback)
	case name == "workspaceFolderBasename":
		return x.expandKnown("the name of the project's folder", baseName(x.v.Workspace), name, fallback)
	case body == "pathSeparator" || body == "/":
		return x.pathSeparator()
	case strings.HasPrefix(body, "input:"):
		return x.expandInput(strings.TrimPrefix(body, "input:"))
	case strings.HasPrefix(body, "file:"):
		return x.expandFile(strings.TrimPrefix(body, "file:"))
	case strings.HasPrefix(name, "env://") && len(name) > len("env://"):
		return x.expandEnv(name[len("env://"):], fallback, hasFallback)
	case strings.HasPrefix(name, "env:") && len(name) > len("env:") && name != "env://":
		return x.expandEnv(name[len("env:"):], fallback, hasFallback)
	case plainName().MatchString(name):
		return x.expandEnv(name, fallback, hasFallback)
	}
	x.addMissing(body, fmt.Sprintf("${%s} is not a variable that dowel knows", body),
		"write ${NAME}, ${NAME:-default}, ${env:NAME}, ${input:ID}, ${file:PATH}, ${userHome} or ${workspaceFolder}, and $${ for ${ itself")
	return ""
}

func (x *expansion) addMissing(variable, message, hint string) {
	x.missing = append(x.missing, missingVariable{variable, message, hint})
}

// expandKnown expands a variable that dowel itself defines.
func (x *expansion) expandKnown(what, value, name, fallback string) string {
	switch {
	case value == "" && fallback != "":
		return x.expandDefault(fallback)
	case value == "":
		x.addMissing(name, fmt.Sprintf("${%s} has no value here", name), "start dowel in the folder of a project, or write the path")
		return ""
	}
	x.used = append(x.used, usedVariable{from: what, value: value})
	return value
}

func (x *expansion) pathSeparator() string {
	if x.v.GOOS == "windows" {
		return `\`
	}
	return "/"
}

// expandEnv expands an environment variable. As in a shell, the default also replaces an empty
// value.
func (x *expansion) expandEnv(name, fallback string, hasFallback bool) string {
	value, ok := x.v.Env(name)
	switch {
	case ok && (value != "" || !hasFallback):
		x.used = append(x.used, usedVariable{"environment variable " + name, value, !isPublic(name)})
		return value
	case hasFallback:
		x.used = append(x.used, usedVariable{from: "default, since environment variable " + name + " is not set"})
		return x.expandDefault(fallback)
	}
	x.addMissing(name, fmt.Sprintf("environment variable %s is not set", name),
		fmt.Sprintf("set it where dowel is started, or write a default: ${%s:-…}", name))
	return ""
}

// expandDefault expands a default, which may hold variables.
func (x *expansion) expandDefault(text string) string {
	if x.depth++; x.depth > maxNesting {
		x.addMissing("${", fmt.Sprintf("variables are nested more than %d deep", maxNesting), "simplify the default")
		return ""
	}
	defer func() { x.depth-- }()
	return x.expandText(text)
}

// expandInput expands ${input:ID} to its answer or its default.
func (x *expansion) expandInput(id string) string {
	in, declared := Input{ID: id}, false
	if i := slices.IndexFunc(x.inputs, func(in Input) bool { return in.ID == id }); i >= 0 {
		in, declared = x.inputs[i], true
	}
	if x.v.Input != nil {
		if answer, ok := x.v.Input(in); ok {
			x.used = append(x.used, usedVariable{"answer to input " + id, answer, in.Password})
			return answer
		}
	}
	switch {
	case in.HasDefault:
		x.used = append(x.used, usedVariable{"default of input " + id, in.Default, in.Password})
		return in.Default
	case !declared:
		x.addMissing("input:"+id, fmt.Sprintf("input %s has no answer, and the file does not declare it", id), inputHint(in))
	default:
		x.addMissing("input:"+id, "no answer to input "+in.describeInput(), inputHint(in))
	}
	return ""
}

// inputHint tells how to give an input a value: dowel asks no questions while servers run.
func inputHint(in Input) string {
	hint := fmt.Sprintf("replace ${input:%s} by ${%s} and set that environment variable", in.ID, environmentName(in.ID))
	if !in.Password { // a secret must not be written into the file
		hint += `, or give the input a "default" in "inputs"`
	}
	return "dowel does not ask for inputs: " + hint
}

// environmentName converts an input's id to the name of an environment variable.
func environmentName(id string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, id)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "INPUT_" + name
	}
	return strings.ToUpper(name)
}

// expandFile expands ${file:PATH} to the file's content.
func (x *expansion) expandFile(path string) string {
	path = x.v.expandHome(path)
	if !filepath.IsAbs(path) && x.v.Workspace != "" {
		path = filepath.Join(x.v.Workspace, path)
	}
	text, err := x.v.ReadFile(path)
	if err == nil && len(text) > maxValue {
		err = fmt.Errorf("it has more than %d MiB", maxValue>>20)
	}
	if err != nil {
		x.addMissing("file:"+path, fmt.Sprintf("the file %s cannot be read: %s", path, errorWithoutPath(err)), "create it, or correct the path")
		return ""
	}
	value := strings.TrimRight(string(text), "\r\n")
	x.used = append(x.used, usedVariable{"file " + path, value, true})
	return value
}
