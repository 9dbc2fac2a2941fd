package toolargs

import (
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
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/schema"
)

// Choices returns the choices of a field, and whether several may be taken.
func (f Property) Choices() (choices []choice, several bool) {
	if choices := f.choices(); choices != nil {
		return choices, false
	}
	return f.items().choices(), true
}

// Demands says what the field takes: "integer, 0 to 150, required".
func (f Property) Demands() string {
	kind := f.Kind()
	switch choices, several := f.Choices(); {
	case choices != nil && several:
		kind = "numbers or names, with commas between them"
	case choices != nil:
		kind = "number or name"
	case f.Kind() == "boolean":
		kind = "yes or no"
	case f.Kind() == "string":
		kind = "text"
	}
	parts := []string{kind}
	if format := f.Text("format"); format != "" {
		parts[0] = term.RevealLine(format)
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
	switch fallback := f.Fallback(); {
	case fallback != "":
		parts = append(parts, "Enter takes "+term.RevealLine(fallback))
	case f.Required:
		parts = append(parts, "required")
	default:
		parts = append(parts, "Enter leaves it out")
	}
	return strings.Join(parts, ", ")
}

func (f Property) bounds(least, most, unit string) string {
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

// ReadAnswer reads what the user typed; nil leaves the field out.
func (f Property) ReadAnswer(answer string) (value json.RawMessage, err error) {
	trimmed := strings.TrimSpace(answer)
	if trimmed == "" {
		return f.emptyAnswer()
	}
	switch choices, several := f.Choices(); {
	case choices != nil && several:
		value, err = pickSeveral(choices, trimmed)
	case choices != nil:
		value, err = pick(choices, trimmed)
	case f.Kind() == "boolean":
		value, err = yesOrNo(trimmed)
	case slices.Contains(f.types(), "string"):
		value, err = f.readWord(answer)
	default:
		value, err = f.readWord(trimmed)
	}
	if err == nil {
		err = f.Check(value)
	}
	return value, err
}

// emptyAnswer is an empty answer: the default, or none.
func (f Property) emptyAnswer() (json.RawMessage, error) {
	if fallback := rawjson.Lookup(f.raw, "default"); fallback != nil {
		return fallback, nil
	}
	if f.Required {
		return nil, errors.New("an answer is needed")
	}
	return nil, nil
}

// Check checks a value against the field's own schema, and its format.
func (f Property) Check(value json.RawMessage) error {
	if compiled, err := schema.Compile(f.raw); err == nil {
		if err := compiled.Validate(value); err != nil {
			return err
		}
	}
	text, ok := rawjson.String(value)
	if !ok {
		return nil
	}
	return checkFormat(f.Text("format"), text)
}

// checkFormat checks the formats that forms know.
func checkFormat(format, text string) (err error) {
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
	for _, name := range []func(choice) string{choice.Text, func(c choice) string { return c.Title }} {
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
