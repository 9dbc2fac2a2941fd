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

// Choices returns the choices of a field, and whether the user may take several. choices is nil if
// the field accepts other values.
func (p Property) Choices() (choices []choice, several bool) {
	if choices := p.allowedChoices(); choices != nil {
		return choices, false
	}
	return p.itemSchema().allowedChoices(), true
}

// Demands describes the values that the field accepts, such as "integer, 0 to 150, required".
func (p Property) Demands() string {
	kind := p.Kind()
	switch choices, several := p.Choices(); {
	case choices != nil && several:
		kind = "numbers or names, with commas between them"
	case choices != nil:
		kind = "number or name"
	case p.Kind() == "boolean":
		kind = "yes or no"
	case p.Kind() == "string":
		kind = "text"
	}
	parts := []string{kind}
	if format := p.Text("format"); format != "" {
		parts[0] = term.RevealLine(format)
	}
	if bounds := p.formatBounds("minimum", "maximum", ""); bounds != "" {
		parts = append(parts, bounds)
	}
	if bounds := p.formatBounds("minLength", "maxLength", " characters"); bounds != "" {
		parts = append(parts, bounds)
	}
	if bounds := p.formatBounds("minItems", "maxItems", " of them"); bounds != "" {
		parts = append(parts, bounds)
	}
	switch fallback := p.Fallback(); {
	case fallback != "":
		parts = append(parts, "Enter takes "+term.RevealLine(fallback))
	case p.Required:
		parts = append(parts, "required")
	default:
		parts = append(parts, "Enter leaves it out")
	}
	return strings.Join(parts, ", ")
}

// formatBounds formats the limits in the keywords least and most, such as "0 to 150", or "" without
// limits.
func (p Property) formatBounds(least, most, unit string) string {
	low, high := string(rawjson.Lookup(p.raw, least)), string(rawjson.Lookup(p.raw, most))
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

// ReadAnswer converts the answer that the user typed to a JSON value and checks it. A nil value
// means that the field is left out.
func (p Property) ReadAnswer(answer string) (value json.RawMessage, err error) {
	trimmed := strings.TrimSpace(answer)
	if trimmed == "" {
		return p.readEmptyAnswer()
	}
	switch choices, several := p.Choices(); {
	case choices != nil && several:
		value, err = parseChoices(choices, trimmed)
	case choices != nil:
		value, err = parseChoice(choices, trimmed)
	case p.Kind() == "boolean":
		value, err = parseYesNo(trimmed)
	case slices.Contains(p.allowedTypes(), "string"):
		value, err = p.parseWord(answer)
	default:
		value, err = p.parseWord(trimmed)
	}
	if err == nil {
		err = p.Check(value)
	}
	return value, err
}

// ReadChosen returns the value of chosen choices, given by their indices, and checks it.
func (p Property) ReadChosen(chosen []int) (value json.RawMessage, err error) {
	choices, several := p.Choices()
	values := []json.RawMessage{}
	for _, i := range chosen {
		values = append(values, choices[i].value)
	}
	switch {
	case several:
		value, err = json.Marshal(values)
	case len(values) == 1:
		value = values[0]
	default:
		return p.readEmptyAnswer()
	}
	if err == nil {
		err = p.Check(value)
	}
	return value, err
}

// readEmptyAnswer returns the value of an empty answer: the default, or nil. It is an error if the
// field is required and lacks a default.
func (p Property) readEmptyAnswer() (json.RawMessage, error) {
	if fallback := rawjson.Lookup(p.raw, "default"); fallback != nil {
		return fallback, nil
	}
	if p.Required {
		return nil, errors.New("an answer is needed")
	}
	return nil, nil
}

// Check validates a value against the schema and the format of the field.
func (p Property) Check(value json.RawMessage) error {
	if compiled, err := schema.Compile(p.raw); err == nil {
		if err := compiled.Validate(value); err != nil {
			return err
		}
	}
	text, ok := rawjson.String(value)
	if !ok {
		return nil
	}
	return checkFormat(p.Text("format"), text)
}

// checkFormat checks the formats that elicitation forms define. It accepts other formats.
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

// parseYesNo converts an answer to true or false.
func parseYesNo(answer string) (json.RawMessage, error) {
	switch strings.ToLower(answer) {
	case "y", "yes", "true":
		return json.RawMessage("true"), nil
	case "n", "no", "false":
		return json.RawMessage("false"), nil
	}
	return nil, errors.New("answer yes or no")
}

// parseChoice returns the value of the choice that answer names: by value, by title or by number,
// in this order, because a value may look like a number.
func parseChoice(choices []choice, answer string) (json.RawMessage, error) {
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

// parseChoices returns a list of the choices that answer names, separated by commas.
func parseChoices(choices []choice, answer string) (json.RawMessage, error) {
	list := json.RawMessage{'['}
	for i, part := range strings.Split(answer, ",") {
		value, err := parseChoice(choices, strings.TrimSpace(part))
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
