package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/schema"
)

// field asks for one field until the answer fits; nil leaves the field out.
func (q *questions) field(ctx context.Context, f property) (json.RawMessage, error) {
	q.describe(f)
	for {
		answer, err := q.prompt(ctx, "  >")
		if err != nil {
			return nil, err
		}
		value, err := f.entered(answer)
		if err == nil {
			return value, nil
		}
		q.say("  %s", q.out.yellow(printable(err.Error())))
	}
}

func (q *questions) describe(f property) {
	label := revealedLine(f.text("title"))
	if label == "" {
		label = revealedLine(f.name)
	}
	q.say("  %s %s", q.out.bold(label), q.out.dim("("+f.demands()+")"))
	if about := revealedLine(f.text("description")); about != "" {
		q.say("    %s", about)
	}
	choices, _ := f.offered()
	for i, c := range choices {
		name := revealedLine(c.text())
		if c.title != "" && c.title != c.text() {
			name = revealedLine(c.title) + " " + q.out.dim(name)
		}
		q.say("    %d) %s", i+1, name)
	}
}

// offered returns the choices of a field, and whether several may be taken.
func (f property) offered() (choices []choice, several bool) {
	if choices := f.choices(); choices != nil {
		return choices, false
	}
	return f.items().choices(), true
}

// demands says what the field takes: "integer, 0 to 150, required".
func (f property) demands() string {
	kind := f.kind()
	switch choices, several := f.offered(); {
	case choices != nil && several:
		kind = "numbers or names, with commas between them"
	case choices != nil:
		kind = "number or name"
	case f.kind() == "boolean":
		kind = "yes or no"
	case f.kind() == "string":
		kind = "text"
	}
	parts := []string{kind}
	if format := f.text("format"); format != "" {
		parts[0] = revealedLine(format)
	}
	if bounds := f.bounds("minimum", "maximum", ""); bounds != "" {
		parts = append(parts, bounds)
	}
	if bounds := f.bounds("minLength", "maxLength", " characters"); bounds != "" {
		parts = append(parts, bounds)
	}
	if bounds := f.bounds("minItems", "maxItems", " of them"); bounds != "" {
		parts = append(parts, bounds)
	}
	switch fallback := f.fallback(); {
	case fallback != "":
		parts = append(parts, "Enter takes "+revealedLine(fallback))
	case f.required:
		parts = append(parts, "required")
	default:
		parts = append(parts, "Enter leaves it out")
	}
	return strings.Join(parts, ", ")
}

func (f property) bounds(least, most, unit string) string {
	low, high := string(rawjson.Lookup(f.raw, least)), string(rawjson.Lookup(f.raw, most))
	switch {
	case low != "" && high != "":
		return low + " to " + high + unit
	case low != "":
		return "at least " + low + unit
	case high != "":
		return "at most " + high + unit
	}
	return ""
}

// entered reads what the user typed; nil leaves the field out.
func (f property) entered(answer string) (value json.RawMessage, err error) {
	trimmed := strings.TrimSpace(answer)
	if trimmed == "" {
		return f.nothing()
	}
	switch choices, several := f.offered(); {
	case choices != nil && several:
		value, err = pickSeveral(choices, trimmed)
	case choices != nil:
		value, err = pick(choices, trimmed)
	case f.kind() == "boolean":
		value, err = yesOrNo(trimmed)
	case slices.Contains(f.types(), "string"):
		value, err = f.typed(answer)
	default:
		value, err = f.typed(trimmed)
	}
	if err == nil {
		err = f.fits(value)
	}
	return value, err
}

// nothing is an empty answer: the default, or none.
func (f property) nothing() (json.RawMessage, error) {
	if fallback := rawjson.Lookup(f.raw, "default"); fallback != nil {
		return fallback, nil
	}
	if f.required {
		return nil, errors.New("an answer is needed")
	}
	return nil, nil
}

// fits checks a value against the field's own schema, and its format.
func (f property) fits(value json.RawMessage) error {
	if compiled, err := schema.Compile(f.raw); err == nil {
		if err := compiled.Validate(value); err != nil {
			return err
		}
	}
	text, ok := rawjson.String(value)
	if !ok {
		return nil
	}
	return formatted(f.text("format"), text)
}

// formatted checks the formats that forms know.
func formatted(format, text string) (err error) {
	example := ""
	switch format {
	case "email":
		example = "ada@example.com"
		var address *mail.Address
		if address, err = mail.ParseAddress(text); err == nil && address.Address != text {
			err = errors.New("a name is not wanted")
		}
	case "uri":
		example = "https://example.com"
		var u *url.URL
		if u, err = url.Parse(text); err == nil && !u.IsAbs() {
			err = errors.New("it has no scheme")
		}
	case "date":
		example = time.DateOnly
		_, err = time.Parse(time.DateOnly, text)
	case "date-time":
		example = "2006-01-02T15:04:05Z"
		_, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return fmt.Errorf("must be of the format %s, such as %s", format, example)
	}
	return nil
}

func yesOrNo(answer string) (json.RawMessage, error) {
	switch strings.ToLower(answer) {
	case "y", "yes", "true":
		return json.RawMessage("true"), nil
	case "n", "no", "false":
		return json.RawMessage("false"), nil
	}
	return nil, errors.New("answer yes or no")
}

// pick finds a choice by its value, its title or its number, in this order: a value may look like a number.
func pick(choices []choice, answer string) (json.RawMessage, error) {
	for _, name := range []func(choice) string{choice.text, func(c choice) string { return c.title }} {
		for _, c := range choices {
			if answer != "" && strings.EqualFold(name(c), answer) {
				return c.value, nil
			}
		}
	}
	if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(choices) {
		return choices[n-1].value, nil
	}
	return nil, fmt.Errorf("%q is none of the choices: answer with a number from 1 to %d, or a name", answer, len(choices))
}

func pickSeveral(choices []choice, answer string) (json.RawMessage, error) {
	list := json.RawMessage{'['}
	for i, part := range strings.Split(answer, ",") {
		value, err := pick(choices, strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, value...)
	}
	return append(list, ']'), nil
}
