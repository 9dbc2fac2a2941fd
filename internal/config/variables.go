package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Variables are what stands behind ${…} in strings. [Options.Variables] makes them.
type Variables struct {
	// Env looks environment variables up; nil: os.LookupEnv.
	Env func(string) (string, bool)
	// Home is ${userHome}, and ~ at the start of a path; empty: os.UserHomeDir.
	Home string
	// Workspace is ${workspaceFolder}, the folder of the project; empty: there is none.
	Workspace string
	// GOOS decides what ${pathSeparator} is, and whether %VAR% is a variable; empty: this system.
	GOOS string
	// Input answers ${input:ID}, and reports whether it could. The input has an ID only where the file does not declare it. nil: an
	// input has its default.
	Input func(Input) (string, bool)
	// ReadFile reads the file of ${file:PATH} and of envFile; nil: the file system.
	ReadFile func(path string) ([]byte, error)
}

// maxValue and maxNesting bound what a variable may bring.
const (
	maxValue   = 1 << 20
	maxNesting = 8
)

func (v Variables) complete() Variables {
	o := Options{Home: v.Home, GOOS: v.GOOS, Env: v.Env}.complete()
	v.Home, v.GOOS, v.Env = o.Home, o.GOOS, o.Env
	if v.ReadFile == nil {
		v.ReadFile = func(path string) ([]byte, error) { return readText(path, maxValue) }
	}
	return v
}

// Noting returns the same variables, where read is told of each file that is read, and what was in it.
func (v Variables) Noting(read func(path string, text []byte, err error)) Variables {
	v = v.complete()
	file := v.ReadFile
	v.ReadFile = func(path string) ([]byte, error) {
		text, err := file(path)
		read(path, text, err)
		return text, err
	}
	return v
}

// home replaces a ~ at the start of a path.
func (v Variables) home(path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") || strings.HasPrefix(path, `~\`) {
		return v.Home + path[1:]
	}
	return path
}

// Expand replaces the variables of a string. The names that have no value are in missing, and nothing stands in their place.
func (v Variables) Expand(text string) (value string, missing []string) {
	x := expansion{v: v.complete()}
	value = x.text(text)
	for _, m := range x.missing {
		missing = append(missing, m.variable)
	}
	return value, missing
}

// expansion expands the strings of one server, one after the other.
type expansion struct {
	v      Variables
	inputs []Input
	bare   bool // $VAR counts too
	depth  int

	used    []used
	missing []missing
}

// used is a variable that had a value.
type used struct {
	from   string // in words
	value  string
	secret bool
}

// missing is a variable that has none.
type missing struct {
	variable, message, hint string
}

func (m missing) problem(at Position, field, server string) Problem {
	return Problem{Severity: Error, Position: at, Server: server, Message: field + ": " + m.message, Hint: m.hint, Variable: m.variable}
}

// text expands one string. $${ stands for ${ itself.
func (x *expansion) text(text string) string {
	var out strings.Builder
	for text != "" {
		i := strings.IndexAny(text, "$%")
		if i < 0 {
			i = len(text)
		}
		out.WriteString(text[:i])
		text = text[i:]
		value, n := x.next(text)
		if isFolder(text[:n]) && len(text) > n && (text[n] == '/' || text[n] == '\\') {
			value = strings.TrimRight(value, `/\`) // that of a root ends with one already
		}
		out.WriteString(value)
		text = text[n:]
	}
	return out.String()
}

// isFolder reports whether a variable stands for a folder.
func isFolder(variable string) bool {
	return variable == "${workspaceFolder}" || variable == "${userHome}"
}

var (
	bareName    = regexp.MustCompile(`^\$([A-Za-z_][A-Za-z0-9_]*)`)
	percentName = regexp.MustCompile(`^%([A-Za-z_][A-Za-z0-9_]*)%`)
	plainName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// next expands what the text begins with, and tells how much of it that was.
func (x *expansion) next(text string) (value string, n int) {
	switch {
	case text == "":
		return "", 0
	case strings.HasPrefix(text, "$${"):
		return "${", 3
	case strings.HasPrefix(text, "${"):
		end := closing(text)
		if end < 0 {
			x.miss("${", "a ${ is not closed", "close it with }, or write $${ for ${ itself")
			return "", len(text)
		}
		return x.variable(text[2:end]), end + 1
	}
	if m := bareName.FindStringSubmatch(text); m != nil && x.bare {
		return x.env(m[1], "", false), len(m[0])
	}
	if m := percentName.FindStringSubmatch(text); m != nil && x.bare && x.v.GOOS == "windows" {
		return x.env(m[1], "", false), len(m[0])
	}
	return text[:1], 1
}

// closing returns where the } is that closes the ${ at the start of the text, or -1.
func closing(text string) int {
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

// variable expands what stands between ${ and }.
func (x *expansion) variable(body string) string {
	name, fallback, hasFallback := strings.Cut(body, ":-")
	switch {
	case name == "userHome":
		return x.known("the home folder", x.v.Home, name, fallback)
	case name == "workspaceFolder":
		return x.known("the project's folder", x.v.Workspace, name, fallback)
	case name == "workspaceFolderBasename":
		return x.known("the name of the project's folder", base(x.v.Workspace), name, fallback)
	case body == "pathSeparator" || body == "/":
		return x.separator()
	case strings.HasPrefix(body, "input:"):
		return x.input(strings.TrimPrefix(body, "input:"))
	case strings.HasPrefix(body, "file:"):
		return x.file(strings.TrimPrefix(body, "file:"))
	case strings.HasPrefix(name, "env://") && len(name) > len("env://"):
		return x.env(name[len("env://"):], fallback, hasFallback)
	case strings.HasPrefix(name, "env:") && len(name) > len("env:") && name != "env://":
		return x.env(name[len("env:"):], fallback, hasFallback)
	case plainName.MatchString(name):
		return x.env(name, fallback, hasFallback)
	}
	x.miss(body, fmt.Sprintf("${%s} is no variable that dowel knows", body),
		"there are ${NAME}, ${NAME:-default}, ${env:NAME}, ${input:ID}, ${file:PATH}, ${userHome} and ${workspaceFolder}; write $${ for ${ itself")
	return ""
}

func (x *expansion) miss(variable, message, hint string) {
	x.missing = append(x.missing, missing{variable, message, hint})
}

func (x *expansion) known(what, value, name, fallback string) string {
	switch {
	case value == "" && fallback != "":
		return x.fallback(fallback)
	case value == "":
		x.miss(name, fmt.Sprintf("${%s} has no value here", name), "start dowel in the folder of a project, or write the path")
		return ""
	}
	x.used = append(x.used, used{from: what, value: value})
	return value
}

func (x *expansion) separator() string {
	if x.v.GOOS == "windows" {
		return `\`
	}
	return "/"
}

// env is an environment variable. As in a shell, the default also takes the place of an empty value.
func (x *expansion) env(name, fallback string, hasFallback bool) string {
	value, ok := x.v.Env(name)
	switch {
	case ok && (value != "" || !hasFallback):
		x.used = append(x.used, used{"environment variable " + name, value, !public(name)})
		return value
	case hasFallback:
		x.used = append(x.used, used{from: "default, since environment variable " + name + " is not set"})
		return x.fallback(fallback)
	}
	x.miss(name, fmt.Sprintf("environment variable %s is not set", name),
		fmt.Sprintf("set it where dowel is started, or write a default: ${%s:-…}", name))
	return ""
}

// fallback expands a default, which may hold variables itself.
func (x *expansion) fallback(text string) string {
	if x.depth++; x.depth > maxNesting {
		x.miss("${", fmt.Sprintf("variables are nested more than %d deep", maxNesting), "simplify the default")
		return ""
	}
	defer func() { x.depth-- }()
	return x.text(text)
}

func (x *expansion) input(id string) string {
	in, declared := Input{ID: id}, false
	if i := slices.IndexFunc(x.inputs, func(in Input) bool { return in.ID == id }); i >= 0 {
		in, declared = x.inputs[i], true
	}
	if x.v.Input != nil {
		if answer, ok := x.v.Input(in); ok {
			x.used = append(x.used, used{"answer to input " + id, answer, in.Password})
			return answer
		}
	}
	switch {
	case in.HasDefault:
		x.used = append(x.used, used{"default of input " + id, in.Default, in.Password})
		return in.Default
	case !declared:
		x.miss("input:"+id, fmt.Sprintf("input %s has no answer, and the file does not declare it", id), inputHint(in))
	default:
		x.miss("input:"+id, "no answer to input "+in.question(), inputHint(in))
	}
	return ""
}

// inputHint says how an input gets its answer: nobody is asked while servers run.
func inputHint(in Input) string {
	hint := fmt.Sprintf("replace ${input:%s} by ${%s} and set that environment variable", in.ID, environmentName(in.ID))
	if !in.Password { // a secret does not belong into the file
		hint += `, or give the input a "default" in "inputs"`
	}
	return "dowel does not ask for inputs: " + hint
}

// environmentName makes a usual name for an environment variable of an id.
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

func (x *expansion) file(path string) string {
	path = x.v.home(path)
	if !filepath.IsAbs(path) && x.v.Workspace != "" {
		path = filepath.Join(x.v.Workspace, path)
	}
	text, err := x.v.ReadFile(path)
	if err == nil && len(text) > maxValue {
		err = fmt.Errorf("it has more than %d MiB", maxValue>>20)
	}
	if err != nil {
		x.miss("file:"+path, fmt.Sprintf("the file %s cannot be read: %s", path, reason(err)), "create it, or correct the path")
		return ""
	}
	value := strings.TrimRight(string(text), "\r\n")
	x.used = append(x.used, used{"file " + path, value, true})
	return value
}
