package config

import (
	"fmt"
	"slices"
	"strings"
)

// Input is a value that the user is asked for, as in VS Code. ${input:ID} refers to its answer.
type Input struct {
	ID string
	// Type is promptString, pickString or command. The user is also asked for the result of a
	// command.
	Type, Description string
	// Default is the answer if the user gives none, provided that HasDefault is true.
	Default    string
	HasDefault bool
	// Password means that the answer is a secret.
	Password bool
	// Options are the possible answers of a pickString.
	Options []string
	At      Position
}

// Inputs returns the declared inputs to which the server's strings refer.
func (s *Server) Inputs() (used []Input) {
	spec := s.Spec.clone()
	spec.eachString(func(_, text string) string {
		for _, in := range s.inputs {
			if strings.Contains(text, "${input:"+in.ID+"}") && !slices.ContainsFunc(used, func(u Input) bool { return u.ID == in.ID }) {
				used = append(used, in)
			}
		}
		return text
	})
	return used
}

func (r *fileReader) readInputs(n *node) []Input {
	if n == nil {
		return nil
	}
	if !n.is(arrayNode) {
		r.errorf(n.at, "write a list of objects that have an id", "inputs must be a list, not %v", n.kind)
		return nil
	}
	var all []Input
	for i, item := range n.items {
		id := item.member("id")
		if !id.is(stringNode) || id.text == "" {
			r.errorf(item.at, `add "id"`, "inputs[%d] has no id", i)
			continue
		}
		all = append(all, readInput(item))
	}
	return all
}

func readInput(n *node) Input {
	text := func(key string) string {
		if v := n.member(key); v.is(stringNode) {
			return v.text
		}
		return ""
	}
	in := Input{ID: text("id"), Type: text("type"), Description: text("description"), At: n.at}
	if v := n.member("default"); v != nil && v.kind != nullNode {
		in.Default, in.HasDefault = v.text, true
	}
	if v := n.member("password"); v != nil {
		in.Password = v.text == "true"
	}
	if v := n.member("options"); v.is(arrayNode) {
		for _, option := range v.items {
			if option.is(objectNode) && option.member("value") != nil {
				option = option.member("value")
			}
			in.Options = append(in.Options, option.text)
		}
	}
	return in
}

// describeInput names the input in messages.
func (in Input) describeInput() string {
	if in.Description != "" {
		return fmt.Sprintf("%s (%s)", in.ID, in.Description)
	}
	return in.ID
}
