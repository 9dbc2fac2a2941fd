package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// questions puts the questions of a server to the user: on the terminal, and with the answers of --answer. The client asks
// one at a time.
type questions struct {
	out     *screen
	in      *lines // nil where there is no terminal
	origin  string // where the server that asks comes from
	answers []argument
	warn    func(format string, args ...any)
}

// What ends a question without its being answered.
var errDeclined, errLeft = errors.New("declined"), errors.New("left unanswered")

const declineWord = "/decline"

// ask implements [client.Options].Elicit.
func (q *questions) ask(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
	q.out.hold(true)
	defer q.out.hold(false)
	content, err := q.put(ctx, r)
	switch {
	case errors.Is(err, errDeclined):
		q.say(q.out.dim("declined"))
		return &mcp.ElicitResult{Action: mcp.ElicitDecline}, nil
	case errors.Is(err, errLeft), errors.Is(err, io.EOF):
		q.say("\n" + q.out.dim("left unanswered"))
		return &mcp.ElicitResult{Action: mcp.ElicitCancel}, nil
	case err != nil:
		q.warn("a question of the server has no answer: %v", err) // a legacy server may keep it to itself
		return nil, err
	}
	return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: content}, nil
}

func (q *questions) put(ctx context.Context, r *client.ElicitRequest) (json.RawMessage, error) {
	if r.Mode == mcp.ElicitURL {
		return nil, q.visit(ctx, r)
	}
	return q.form(ctx, r)
}

// say writes a line where there is somebody to read it.
func (q *questions) say(format string, args ...any) {
	if q.in != nil {
		fmt.Fprintf(q.out, format+"\n", args...)
	}
}

// asks says who asks, and what.
func (q *questions) asks(r *client.ElicitRequest, what string) {
	q.say("\n%s %s %s", q.out.bold(revealedLine(r.Server)), q.out.dim("("+shorten(q.origin, 60)+")"), what)
	for text := range strings.SplitSeq(strings.TrimSpace(revealed(r.Message)), "\n") {
		q.say("  %s", text)
	}
}

// prompt reads one line of the user.
func (q *questions) prompt(ctx context.Context, text string) (string, error) {
	fmt.Fprint(q.out, q.out.bold(text)+" ")
	answer, err := q.in.next(ctx)
	if err == nil && strings.TrimSpace(answer) == declineWord {
		err = errDeclined
	}
	return answer, err
}

// form asks for each field that --answer does not give, until the user is content with all of them.
func (q *questions) form(ctx context.Context, r *client.ElicitRequest) (json.RawMessage, error) {
	fields := newSpec(r.RequestedSchema).properties()
	given, err := q.given(fields)
	if err != nil {
		return nil, err
	}
	if q.in == nil {
		return given, unanswered(r, fields, given)
	}
	q.asks(r, "asks:")
	q.say("%s", q.out.dim("  ("+declineWord+" says no, Ctrl-D leaves it unanswered)"))
	for {
		content, asked, err := q.fields(ctx, fields, given)
		if err != nil || asked == 1 && len(fields) == 1 {
			return content, err
		}
		again, err := q.confirm(ctx, r, asked)
		if err != nil || !again {
			return content, err
		}
	}
}

// given makes content of what --answer says of the fields.
func (q *questions) given(fields []property) (json.RawMessage, error) {
	words := map[string][]string{}
	for _, answer := range q.answers {
		words[answer.key] = append(words[answer.key], answer.value)
	}
	content := json.RawMessage("{}")
	for _, f := range fields {
		if words[f.name] == nil {
			continue
		}
		value, err := f.gather(words[f.name])
		if err == nil {
			err = f.fits(value)
		}
		if err != nil {
			return nil, usagef("--answer %s: %w", f.name, err)
		}
		content = rawjson.Set(content, f.name, value)
	}
	return content, nil
}

// unanswered is the error of a form that --answer leaves open, where nobody can be asked.
func unanswered(r *client.ElicitRequest, fields []property, given json.RawMessage) error {
	var open []string
	for _, f := range fields {
		if f.required && f.fallback() == "" && rawjson.Lookup(given, f.name) == nil {
			open = append(open, fmt.Sprintf("--answer %s=… (%s)", f.name, f.kind()))
		}
	}
	if open == nil {
		return nil
	}
	return usagef("%s asks %q, and nobody answers; add %s", line(r.Server), line(r.Message), strings.Join(open, ", "))
}

// fields asks for all fields that are not given.
func (q *questions) fields(ctx context.Context, fields []property, given json.RawMessage) (content json.RawMessage, asked int, err error) {
	content = given
	for _, f := range fields {
		if value := rawjson.Lookup(given, f.name); value != nil {
			q.say("  %s: %s", revealedLine(f.name), revealedLine(string(value)))
			continue
		}
		asked++
		value, err := q.field(ctx, f)
		if err != nil {
			return nil, asked, err
		}
		if value != nil {
			content = rawjson.Set(content, f.name, value)
		}
	}
	return content, asked, nil
}

// confirm lets the user look at several answers before they go out.
func (q *questions) confirm(ctx context.Context, r *client.ElicitRequest, asked int) (again bool, err error) {
	question := fmt.Sprintf("Send this to %s? [Y/n/edit]", revealedLine(r.Server))
	if asked == 0 {
		question = "Agree? [Y/n]"
	}
	for {
		answer, err := q.prompt(ctx, question)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "", "y", "yes":
			return false, nil
		case "n", "no":
			return false, errDeclined
		case "e", "edit":
			return true, nil
		}
	}
}
