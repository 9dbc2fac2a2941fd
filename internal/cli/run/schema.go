package run

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/schema"
)

// An answerSchema is the JSON Schema of the answer, from --schema.
type answerSchema struct{ *schema.Schema }

// readAnswerSchema reads the schema of --schema. Without the flag it returns nil.
func readAnswerSchema(path string) (*answerSchema, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, exit.Usagef("--schema: %w", err)
	}
	s, err := schema.Compile(raw)
	if err != nil {
		return nil, exit.Usagef("--schema %s is not a JSON Schema: %w", path, err)
	}
	return &answerSchema{s}, nil
}

// instructions is the part of the system prompt that asks for such an answer.
func (s *answerSchema) instructions() string {
	return "\n\nYour last reply must be one JSON value and nothing else: no text around it, no Markdown. This JSON Schema must accept it:\n" + string(s.JSON())
}

// correction returns the message that asks the model for another answer, or "" if this one matches.
func (s *answerSchema) correction(answer string) string {
	_, err := s.value(answer)
	if err == nil {
		return ""
	}
	return err.Error() + ". Reply with the corrected JSON value and nothing else."
}

// value returns the JSON value of an answer. It must match the schema.
func (s *answerSchema) value(answer string) (json.RawMessage, error) {
	text := strings.TrimSpace(answer)
	if body, fenced := strings.CutPrefix(text, "```"); fenced { // many models cannot do without
		body = strings.TrimSuffix(strings.TrimSpace(body), "```")
		text = strings.TrimSpace(strings.TrimPrefix(body, "json"))
	}
	if err := s.Validate([]byte(text)); err != nil {
		return nil, errSchema{err}
	}
	return json.RawMessage(text), nil
}

// errSchema is the error of an answer that does not match --schema.
type errSchema struct{ err error }

// Error implements [error].
func (e errSchema) Error() string {
	return fmt.Sprintf("the answer does not match the schema: %v", e.err)
}

// Unwrap returns the error of the validation.
func (e errSchema) Unwrap() error { return e.err }

// ExitStatus tells package exit the code.
func (errSchema) ExitStatus() int { return exit.Failed }
