package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/elicit"
	"github.com/dowel-mcp/dowel/internal/cli/question"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/tui/form"
	"github.com/dowel-mcp/dowel/internal/tui/screen"
	"github.com/dowel-mcp/dowel/internal/webpage"
	"github.com/dowel-mcp/dowel/mcp"
)

// Words of the actions of forms.
const (
	sendWord    = "send"
	declineWord = "decline"
	leaveWord   = "leave"
)

// ask shows a form until the user or ctx ends it.
func (s *fullScreen) ask(ctx context.Context, f *form.Form) (word string, err error) {
	answers := make(chan string, 1)
	s.post(screen.Asked{Form: f, Answer: func(word string) { answers <- word }})
	select {
	case word = <-answers:
		return word, nil
	case <-ctx.Done():
		s.post(screen.Withdrawn{Form: f})
		return "", context.Cause(ctx)
	}
}

// askLine asks for one line. Esc is [io.EOF].
func (s *fullScreen) askLine(ctx context.Context, q term.Question) (string, error) {
	return s.askText(ctx, "", strings.TrimSpace(q.Prompt), q.Prefill)
}

// askText asks for a text, below styled text about it.
func (s *fullScreen) askText(ctx context.Context, body, label, prefill string) (string, error) {
	f := &form.Form{
		Body: body, Fields: []form.Field{{Label: label, Value: prefill}}, IsQuick: true,
		Actions: []form.Action{{Word: sendWord, About: "answer"}}, Leave: form.Action{Word: leaveWord, About: "leaves it"},
	}
	word, err := s.ask(ctx, f)
	if err == nil && word == leaveWord {
		err = io.EOF
	}
	return f.Fields[0].Value, err
}

// askApproval asks whether a call may run, in a form with the whole call.
func (s *fullScreen) askApproval(ctx context.Context, c *conversation, q agent.Question) (agent.Decision, error) {
	var about bytes.Buffer
	take := func() string {
		defer about.Reset()
		return about.String()
	}
	asker := question.Asker{Out: term.NewTerminalScreen(&about, c.app.Stdout.File, true), Runtime: c.runtime, EditText: c.editText}
	asker.Ask = func(ctx context.Context, prompt string) (string, error) { return s.askText(ctx, take(), prompt, "") }
	last := ""
	asker.Choose = func(ctx context.Context, prompt string, answers []question.Answer) (string, error) {
		last = strings.TrimLeft(last+take(), "\n") // an edited call is shown below the first one
		return s.choose(ctx, last, prompt, answers)
	}
	decision, err := asker.AskApproval(ctx, q)
	if rest := take(); rest != "" {
		s.post(screen.Printed{Text: rest})
	}
	return decision, err
}

// choose asks for one of the answers. Esc is [io.EOF].
func (s *fullScreen) choose(ctx context.Context, body, prompt string, answers []question.Answer) (string, error) {
	f := &form.Form{Title: prompt, Body: body, Leave: form.Action{Word: leaveWord, About: "refuses"}}
	for _, answer := range answers {
		key := answer.Word
		if answer.Also != "" {
			key = answer.Also
		}
		f.Actions = append(f.Actions, form.Action{Key: key, Word: answer.Word, About: answer.About, Skips: true})
	}
	word, err := s.ask(ctx, f)
	if err == nil && word == leaveWord {
		err = io.EOF
	}
	return word, err
}

// answerElicitation answers a server's question from given, and asks the user for the rest.
func (s *fullScreen) answerElicitation(ctx context.Context, c *conversation, r *client.ElicitRequest, given []toolargs.Argument) (*mcp.ElicitResult, error) {
	title := fmt.Sprintf("%s (%s)", term.RevealLine(r.Server), term.Shorten(c.lookupOrigin(ctx, r.Server), 60))
	var content json.RawMessage
	var word string
	var err error
	if r.Mode == mcp.ElicitURL {
		word, err = s.askVisit(ctx, c, title, r)
	} else {
		content, word, err = s.fillForm(ctx, title, r, given)
	}
	switch {
	case err != nil:
		if context.Cause(ctx) == nil {
			c.app.Warn("could not answer a question of the server: %v", err)
		}
		return nil, err
	case word == declineWord:
		return &mcp.ElicitResult{Action: mcp.ElicitDecline}, nil
	case word == leaveWord:
		return &mcp.ElicitResult{Action: mcp.ElicitCancel}, nil
	}
	return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: content}, nil
}

// fillForm asks for the fields that given lacks.
func (s *fullScreen) fillForm(ctx context.Context, title string, r *client.ElicitRequest, given []toolargs.Argument) (content json.RawMessage, word string, err error) {
	fields := toolargs.NewSpec(r.RequestedSchema).Properties()
	if content, err = elicit.ReadFlagAnswers(fields, given); err != nil {
		return nil, "", err
	}
	f := &form.Form{Title: title + " asks:", Body: term.Reveal(r.Message), Leave: form.Action{Word: leaveWord, About: "leaves it unanswered"}}
	var open []toolargs.Property
	for _, field := range fields {
		if value := rawjson.Lookup(content, field.Name); value != nil {
			f.Body += fmt.Sprintf("\n  %s: %s", term.RevealLine(field.Name), term.RevealLine(string(value)))
			continue
		}
		open = append(open, field)
		f.Fields = append(f.Fields, newField(field))
	}
	for i := range f.Fields {
		f.Fields[i].Check = func() error {
			_, err := readField(open[i], &f.Fields[i])
			return err
		}
	}
	f.Actions = []form.Action{{Word: sendWord, About: "send this to " + term.RevealLine(r.Server)}, {Word: declineWord, About: "decline", Skips: true}}
	if word, err = s.ask(ctx, f); err != nil || word != sendWord {
		return nil, word, err
	}
	for i := range open {
		value, err := readField(open[i], &f.Fields[i])
		if err != nil {
			return nil, "", err
		}
		if value != nil {
			content = rawjson.Set(content, open[i].Name, value)
		}
	}
	return content, word, nil
}

// newField returns the field of a form for a property.
func newField(p toolargs.Property) form.Field {
	label := term.RevealLine(p.Text("title"))
	if label == "" {
		label = term.RevealLine(p.Name)
	}
	f := form.Field{Label: label + " (" + p.Demands() + ")", About: term.RevealLine(p.Text("description")), Chosen: map[int]bool{}}
	fallback := p.Fallback()
	choices, several := p.Choices()
	switch {
	case choices != nil:
		f.Kind = form.OneOf
		if several {
			f.Kind = form.SomeOf
		}
		for i, one := range choices {
			name := term.RevealLine(one.Text())
			if one.Title != "" && one.Title != one.Text() {
				name = term.RevealLine(one.Title) + " – " + name
			}
			f.Choices = append(f.Choices, name)
			if !several && fallback != "" && one.Text() == fallback {
				f.Chosen[i] = true
			}
		}
	case p.Kind() == "boolean":
		f.Kind, f.Choices = form.OneOf, []string{"yes", "no"}
		if at := slices.Index([]string{"true", "false"}, fallback); at >= 0 {
			f.Chosen[at] = true
		}
	default:
		f.Value = term.RevealLine(fallback)
	}
	return f
}

// readField returns the value of a field; nil means that it is left out.
func readField(p toolargs.Property, f *form.Field) (json.RawMessage, error) {
	if f.Kind == form.Text {
		return p.ReadAnswer(f.Value)
	}
	if choices, _ := p.Choices(); choices == nil { // yes or no
		for i, chosen := range f.Chosen {
			if chosen {
				return p.ReadAnswer(f.Choices[i])
			}
		}
		return p.ReadAnswer("")
	}
	var chosen []int
	for i := range f.Choices {
		if f.Chosen[i] {
			chosen = append(chosen, i)
		}
	}
	if chosen == nil && !f.IsTouched() {
		return p.ReadAnswer("")
	}
	return p.ReadChosen(chosen)
}

// askVisit shows the whole URL and asks whether to open it.
func (s *fullScreen) askVisit(ctx context.Context, c *conversation, title string, r *client.ElicitRequest) (word string, err error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return "", fmt.Errorf("the server sent an invalid URL: %w", err)
	}
	out := c.app.Stdout
	before, host, after := elicit.SplitURL(r.URL)
	body := []string{term.Reveal(r.Message), "", before + out.Styled("1;4", host) + after, ""}
	for _, doubt := range elicit.URLWarnings(u) {
		body = append(body, out.Red("Careful:")+" "+doubt)
	}
	f := &form.Form{Title: title + " asks you to visit a page:", Leave: form.Action{Word: declineWord, About: "says no"}}
	if u.Scheme == "https" || u.Scheme == "http" {
		body = append(body, "Nothing has been opened. Look at the underlined name: do you want to go there?")
		f.Actions = []form.Action{{Key: "o", Word: "open", About: "open it", Skips: true}, {Key: "m", Word: "myself", About: "I open it myself", Skips: true}}
	} else {
		body = append(body, "dowel opens web pages only.")
	}
	f.Actions = append(f.Actions, form.Action{Key: "n", Word: declineWord, About: "no", Skips: true})
	f.Body = strings.Join(body, "\n")
	word, err = s.ask(ctx, f)
	if err == nil && word == "open" {
		if problem := webpage.Open(r.URL); problem != nil {
			c.view.Note("%v: please open it yourself", problem)
		}
	}
	return word, err
}
