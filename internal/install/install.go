// Package install describes servers that other people publish, before they become entries of a
// configuration file. The packages below it read their sources: [registry] the MCP registry and
// server.json files, [bundle] MCPB bundles, and [link] the install links of other tools. Each
// source becomes a [Plan]: the values that the user must give, and a function that makes the entry
// of them.
//
// Texts of a source are foreign. A plan escapes them, so that ${…} in a published argument is not a
// variable of dowel, and nothing passes through a shell.
package install

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/suggest"
)

// Plan is one way to run a published server.
type Plan struct {
	// Name is the name for the entry, and Title its title, which may be empty.
	Name, Title string
	// Way names the way among the plans of one server, such as npm or remote.
	Way string
	// About describes the source in lines for the user: who published it, which version.
	About []string
	// Warnings are reasons to think twice.
	Warnings []string
	// Unsupported says why dowel cannot run the server in this way. It is empty if dowel can.
	Unsupported string
	Inputs      []Input
	// Build makes the entry. Its values are complete and checked, see [Plan.Fill].
	Build func(v Values) config.Spec
}

// Input is a value that a server needs.
type Input struct {
	// Name identifies the value in dowel add --set NAME=VALUE.
	Name        string
	Description string
	// Default applies if the user gives no value. Example is shown in the question.
	Default, Example string
	Choices          []string
	Required, Secret bool
	// Repeated means that the user can give several values.
	Repeated bool
	// Type is string, number, boolean, file or directory. Empty means string.
	Type     string
	Min, Max *float64 // of a number
}

// Values are the values of a plan's inputs, by their names. An optional input without a value is
// missing.
type Values map[string][]string

// Get returns the first value of an input, or "".
func (v Values) Get(name string) string {
	if all := v[name]; len(all) > 0 {
		return all[0]
	}
	return ""
}

// Fill checks the given values, adds defaults, and returns the inputs that still need a value. A
// secret without a value becomes a variable with its name, so that the secret stays out of the
// file.
func (p *Plan) Fill(given Values) (v Values, missing []Input, err error) {
	v = Values{}
	var names []string
	for _, in := range p.Inputs {
		names = append(names, in.Name)
		all := given[in.Name]
		switch {
		case len(all) > 1 && !in.Repeated:
			return nil, nil, fmt.Errorf("%s has one value, but %d are given", in.Name, len(all))
		case len(all) > 0:
			for _, value := range all {
				if err := in.Check(value); err != nil {
					return nil, nil, err
				}
			}
			v[in.Name] = all
		case in.Default != "":
			v[in.Name] = []string{Escape(in.Default)}
		case in.Secret && in.Required:
			v[in.Name] = []string{"${" + in.Variable() + "}"}
		case in.Required:
			missing = append(missing, in)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			return nil, nil, fmt.Errorf("%s has no value named %s%s", p.Name, name, suggest.Hint(name, names))
		}
	}
	return v, missing, nil
}

var notVariable = lazyregexp.New(`[^A-Z0-9_]+`)

// Variable returns the environment variable from which dowel reads a secret that the user did not
// give.
func (in *Input) Variable() string {
	name := strings.Trim(notVariable().ReplaceAllString(strings.ToUpper(in.Name), "_"), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "SECRET_" + name
	}
	return name
}

// variable matches a value with variables of dowel. Their values are not known yet.
var variable = lazyregexp.New(`\$\{[^}]*\}`)

// IsVariable reports whether a text is one variable of a configuration file and nothing else.
func IsVariable(text string) bool { return variable().FindString(text) == text && text != "" }

// Check returns an error unless a value is valid for the input. The error does not show a secret.
func (in *Input) Check(value string) error {
	switch {
	case variable().MatchString(value):
		return nil
	case value == "" && in.Required:
		return fmt.Errorf("%s must have a value", in.Name)
	case strings.ContainsRune(value, 0):
		return fmt.Errorf("%s must not contain a zero byte", in.Name)
	case len(in.Choices) > 0 && !slices.Contains(in.Choices, value):
		return in.explainValue(value, "one of "+strings.Join(in.Choices, ", "))
	case in.Type == "boolean" && value != "true" && value != "false":
		return in.explainValue(value, "true or false")
	case in.Type == "number":
		return in.checkNumber(value)
	}
	return nil
}

func (in *Input) checkNumber(value string) error {
	n, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil:
		return in.explainValue(value, "a number")
	case in.Min != nil && n < *in.Min:
		return in.explainValue(value, fmt.Sprintf("at least %v", *in.Min))
	case in.Max != nil && n > *in.Max:
		return in.explainValue(value, fmt.Sprintf("at most %v", *in.Max))
	}
	return nil
}

// explainValue returns the error of a wrong value, without the value if it is a secret.
func (in *Input) explainValue(value, want string) error {
	if in.Secret {
		return fmt.Errorf("the value of %s is wrong, want %s", in.Name, want)
	}
	return fmt.Errorf("%s is %q, want %s", in.Name, value, want)
}

// Escape returns a text that a configuration file expands to the given one.
func Escape(text string) string { return strings.ReplaceAll(text, "${", "$${") }
