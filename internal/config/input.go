package config

import (
	"fmt"
	"slices"
	"strings"
)

// Input is a value that the user is asked for, as VS Code has them; ${input:ID} stands for its answer.
type Input struct {
	ID string
	// Type is promptString, pickString or command; what a command would answer has to be asked for as well.
	Type, Description string
	// Default is the answer where none is given, if HasDefault.
	Default    string
	HasDefault bool
	// Password: the answer is a secret.
	Password bool
	// Options are the possible answers of a pickString.
	Options []string
	At      Position
}

// Inputs returns the declarations of the inputs that the server's strings refer to.
func (s *Server) Inputs() (used []Input) {
	spec := s.Spec.clone()
	spec.each(func(_, text string) string {
		for _, in := range s.inputs {
			if strings.Contains(text, "${input:"+in.ID+"}") && !slices.ContainsFunc(used, func(u Input) bool { return u.ID == in.ID }) {
				used = append(used, in)
			}
		}
		return text
	})
	return used
}

func (r *fileReader) inputs(n *node) []Input {
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

// question is how the user is told of the input.
func (in Input) question() string {
	if in.Description != "" {
		return fmt.Sprintf("%s (%s)", in.ID, in.Description)
	}
	return in.ID
}
