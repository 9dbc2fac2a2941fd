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

// Asker answers the questions of a server: with the answers of --answer, and by asking the user on
// the terminal. It is not safe for concurrent use; a client asks one question at a time.
type Asker struct {
	Out     *term.Screen
	In      *term.Lines         // nil without a terminal
	Origin  string              // the server's URL or command line, shown with its name
	Answers []toolargs.Argument // from --answer
	Warn    func(format string, args ...any)
}

// Errors that end a question without an answer.
var errDeclined, errUnanswered = errors.New("declined"), errors.New("left unanswered")

// declineWord is the reply that declines a request.
const declineWord = "/decline"

// Ask answers one request; it is for the Elicit option of a client. Without a terminal, a form that
// the flags do not answer is a usage error.
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
		a.Warn("could not answer a question of the server: %v", err) // a legacy server might not report the error
		return nil, err
	}
	return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: content}, nil
}

// answerRequest answers a form, or asks the user to visit a URL.
func (a *Asker) answerRequest(ctx context.Context, r *client.ElicitRequest) (json.RawMessage, error) {
	if r.Mode == mcp.ElicitURL {
		return nil, a.openURL(ctx, r)
	}
	return a.fillForm(ctx, r)
}

// printLine writes a line if the user is at a terminal.
func (a *Asker) printLine(format string, args ...any) {
	if a.In != nil {
		fmt.Fprintf(a.Out, format+"\n", args...)
	}
}

// printRequest writes the server and its message. action says what the server wants, such as
// "asks:".
func (a *Asker) printRequest(r *client.ElicitRequest, action string) {
	a.printLine("\n%s %s %s", a.Out.Bold(term.RevealLine(r.Server)), a.Out.Dim("("+term.Shorten(a.Origin, 60)+")"), action)
	for text := range strings.SplitSeq(strings.TrimSpace(term.Reveal(r.Message)), "\n") {
		a.printLine("  %s", text)
	}
}

// readReply shows a prompt and reads one line. The error is errDeclined if the line is declineWord.
func (a *Asker) readReply(ctx context.Context, text string) (string, error) {
	fmt.Fprint(a.Out, a.Out.Bold(text)+" ")
	answer, err := a.In.Next(ctx)
	if err == nil && strings.TrimSpace(answer) == declineWord {
		err = errDeclined
	}
	return answer, err
}

// fillForm asks for each field that --answer does not give. If there is more than one answer, it
// shows them for confirmation, and starts again if the user wants to edit.
func (a *Asker) fillForm(ctx context.Context, r *client.ElicitRequest) (json.RawMessage, error) {
	fields := toolargs.NewSpec(r.RequestedSchema).Properties()
	given, err := ReadFlagAnswers(fields, a.Answers)
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

// ReadFlagAnswers returns the content that the answers of --answer give for the fields. The error
// is a usage error.
func ReadFlagAnswers(fields []toolargs.Property, answers []toolargs.Argument) (json.RawMessage, error) {
	words := map[string][]string{}
	for _, answer := range answers {
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

// checkUnanswered returns a usage error if given lacks required fields without a default. It is for
// forms without a terminal.
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
	return exit.Usagef("%s asks %q; run dowel on a terminal, or add %s", term.Line(r.Server), term.Line(r.Message), strings.Join(open, ", "))
}

// askFields asks for each field that given lacks, and shows the others. asked counts the questions.
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

// confirmForm asks whether to send the answers. again means that the user wants to edit them.
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

// AnswersFor returns the answers of --answer that apply to a server. SERVER.key applies only to
// that server and takes precedence over key.
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
