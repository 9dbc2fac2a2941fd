// Package elicit puts the questions of servers (elicitation) to the user: forms field by field, and
// URLs to visit. Answers given by flags come first. Without a terminal a question that the flags
// leave open fails. Everything that the user decides about is shown with hidden characters
// revealed, and no URL is opened without consent.
package elicit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// Asker puts the questions of a server to the user: on the terminal, and with the answers of --answer. The client asks
// one at a time.
type Asker struct {
	Out     *term.Screen
	In      *term.Lines // nil where there is no terminal
	Origin  string      // where the server that asks comes from
	Answers []toolargs.Argument
	Warn    func(format string, args ...any)
}

// What ends a question without its being answered.
var errDeclined, errUnanswered = errors.New("declined"), errors.New("left unanswered")

const declineWord = "/decline"

// Ask implements [client.Options].Elicit.
func (a *Asker) Ask(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
	a.Out.HoldStatus(true)
	defer a.Out.HoldStatus(false)
	content, err := a.answerRequest(ctx, r)
	switch {
	case errors.Is(err, errDeclined):
		a.printLine(a.Out.Dim("declined"))
		return &mcp.ElicitResult{Action: mcp.ElicitDecline}, nil
	case errors.Is(err, errUnanswered), errors.Is(err, io.EOF):
		a.printLine("\n" + a.Out.Dim("left unanswered"))
		return &mcp.ElicitResult{Action: mcp.ElicitCancel}, nil
	case err != nil:
		a.Warn("a question of the server has no answer: %v", err) // a legacy server may keep it to itself
		return nil, err
	}
	return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: content}, nil
}

func (a *Asker) answerRequest(ctx context.Context, r *client.ElicitRequest) (json.RawMessage, error) {
	if r.Mode == mcp.ElicitURL {
		return nil, a.openURL(ctx, r)
	}
	return a.fillForm(ctx, r)
}

// printLine writes a line where there is somebody to read it.
func (a *Asker) printLine(format string, args ...any) {
	if a.In != nil {
		fmt.Fprintf(a.Out, format+"\n", args...)
	}
}

// printRequest says who asks, and what.
func (a *Asker) printRequest(r *client.ElicitRequest, what string) {
	a.printLine("\n%s %s %s", a.Out.Bold(term.RevealLine(r.Server)), a.Out.Dim("("+term.Shorten(a.Origin, 60)+")"), what)
	for text := range strings.SplitSeq(strings.TrimSpace(term.Reveal(r.Message)), "\n") {
		a.printLine("  %s", text)
	}
}

// readReply reads one line of the user.
func (a *Asker) readReply(ctx context.Context, text string) (string, error) {
	fmt.Fprint(a.Out, a.Out.Bold(text)+" ")
	answer, err := a.In.Next(ctx)
	if err == nil && strings.TrimSpace(answer) == declineWord {
		err = errDeclined
	}
	return answer, err
}

// fillForm asks for each field that --answer does not give, until the user is content with all of them.
func (a *Asker) fillForm(ctx context.Context, r *client.ElicitRequest) (json.RawMessage, error) {
	fields := toolargs.NewSpec(r.RequestedSchema).Properties()
	given, err := a.readFlagAnswers(fields)
	if err != nil {
		return nil, err
	}
	if a.In == nil {
		return given, checkUnanswered(r, fields, given)
	}
	a.printRequest(r, "asks:")
	a.printLine("%s", a.Out.Dim("  ("+declineWord+" says no, Ctrl-D leaves it unanswered)"))
	for {
		content, asked, err := a.askFields(ctx, fields, given)
		if err != nil || asked == 1 && len(fields) == 1 {
			return content, err
		}
		again, err := a.confirmForm(ctx, r, asked)
		if err != nil || !again {
			return content, err
		}
	}
}

// readFlagAnswers makes content of what --answer says of the fields.
func (a *Asker) readFlagAnswers(fields []toolargs.Property) (json.RawMessage, error) {
	words := map[string][]string{}
	for _, answer := range a.Answers {
		words[answer.Key] = append(words[answer.Key], answer.Value)
	}
	content := json.RawMessage("{}")
	for _, f := range fields {
		if words[f.Name] == nil {
			continue
		}
		value, err := f.ReadWords(words[f.Name])
		if err == nil {
			err = f.Check(value)
		}
		if err != nil {
			return nil, exit.Usagef("--answer %s: %w", f.Name, err)
		}
		content = rawjson.Set(content, f.Name, value)
	}
	return content, nil
}

// checkUnanswered is the error of a form that --answer leaves open, where nobody can be asked.
func checkUnanswered(r *client.ElicitRequest, fields []toolargs.Property, given json.RawMessage) error {
	var open []string
	for _, f := range fields {
		if f.Required && f.Fallback() == "" && rawjson.Lookup(given, f.Name) == nil {
			open = append(open, fmt.Sprintf("--answer %s=… (%s)", f.Name, f.Kind()))
		}
	}
	if open == nil {
		return nil
	}
	return exit.Usagef("%s asks %q, and nobody answers; add %s", term.Line(r.Server), term.Line(r.Message), strings.Join(open, ", "))
}

// askFields asks for all fields that are not given.
func (a *Asker) askFields(ctx context.Context, fields []toolargs.Property, given json.RawMessage) (content json.RawMessage, asked int, err error) {
	content = given
	for _, f := range fields {
		if value := rawjson.Lookup(given, f.Name); value != nil {
			a.printLine("  %s: %s", term.RevealLine(f.Name), term.RevealLine(string(value)))
			continue
		}
		asked++
		value, err := a.askField(ctx, f)
		if err != nil {
			return nil, asked, err
		}
		if value != nil {
			content = rawjson.Set(content, f.Name, value)
		}
	}
	return content, asked, nil
}

// confirmForm lets the user look at several answers before they go out.
func (a *Asker) confirmForm(ctx context.Context, r *client.ElicitRequest, asked int) (again bool, err error) {
	question := fmt.Sprintf("Send this to %s? [Y/n/edit]", term.RevealLine(r.Server))
	if asked == 0 {
		question = "Agree? [Y/n]"
	}
	for {
		answer, err := a.readReply(ctx, question)
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

// AnswersFor are the answers to a server among those of --answer: SERVER.key takes the place of key.
func AnswersFor(server string, given []toolargs.Argument) (all []toolargs.Argument) {
	own := map[string]bool{}
	for _, answer := range given {
		if key, ok := strings.CutPrefix(answer.Key, server+"."); ok && server != "" && key != "" {
			own[key] = true
			all = append(all, toolargs.Argument{Key: key, Value: answer.Value})
		}
	}
	for _, answer := range given {
		if !own[answer.Key] {
			all = append(all, answer)
		}
	}
	return all
}
