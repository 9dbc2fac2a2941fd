package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
)

// Question is a question for [AskAll]. [FormQuestion], [URLQuestion], [SampleQuestion],
// [RootsQuestion] and [MethodQuestion] make one.
type Question struct {
	key        string
	request    mcp.InputRequest
	readAnswer func(raw json.RawMessage) error // returns errAskAgain if raw is not a valid answer
	isDone     func(context.Context) (bool, error)
	invalid    error // a mistake in the question
}

// errAskAgain reports that a question has no valid answer.
var errAskAgain = errors.New("no proper answer")

func newQuestion(key, method string, params any, read func(json.RawMessage) error) Question {
	raw, err := mcp.Encode(params)
	return Question{key: key, request: mcp.InputRequest{Method: method, Params: raw}, readAnswer: read, invalid: err}
}

// MethodQuestion asks with a method that an extension of the server declares as an input request
// (see [mcp.Extension]), and decodes the answer into the variable. If the answer is not an object
// that decodes as an R, the question is asked again.
func MethodQuestion[P, R any](key string, method mcp.Method[P, R], params P, into *R) Question {
	return newQuestion(key, method.Name, &params, func(raw json.RawMessage) error {
		var answer R // a new variable, so that no field of an earlier answer survives
		if !rawjson.IsObject(raw) || mcp.Decode(raw, &answer) != nil {
			return errAskAgain
		}
		*into = answer
		return nil
	})
}

// FormQuestion is the question of [Ask]. The answer is stored in the variable.
func FormQuestion[T any](key, message string, into *T) Question {
	f, err := newForm[T]()
	if err != nil {
		return Question{key: key, invalid: err}
	}
	params := &mcp.ElicitParams{Mode: mcp.ElicitForm, Message: message, RequestedSchema: f.described}
	return newQuestion(key, mcp.MethodElicit, params, func(raw json.RawMessage) error {
		r, err := readElicitation(raw, f.schema)
		if err != nil {
			return err
		}
		switch r.Action {
		case mcp.ElicitDecline:
			return ErrDeclined
		case mcp.ElicitCancel:
			return ErrCancelled
		}
		return decodeForm(f, r.Content, into)
	})
}

func decodeForm[T any](f formSchema, content json.RawMessage, into *T) error {
	var answer singleField[T] // a new variable, so that no field of an earlier answer survives
	var err error
	if f.single {
		err = schema.Decode(content, &answer)
	} else {
		err = schema.Decode(content, &answer.Value)
	}
	if err != nil {
		return errAskAgain
	}
	*into = answer.Value
	return nil
}

func rawQuestion(key string, params mcp.ElicitParams, into **mcp.ElicitResult) Question {
	var form *schema.Schema
	if params.Mode == mcp.ElicitURL {
		if err := mcpwire.CheckURI(params.URL); err != nil {
			return Question{key: key, invalid: fmt.Errorf("url: %w", err)}
		}
	} else {
		var err error
		if form, err = compileForm(params.RequestedSchema); err != nil {
			return Question{key: key, invalid: err}
		}
	}
	return newQuestion(key, mcp.MethodElicit, &params, func(raw json.RawMessage) (err error) {
		*into, err = readElicitation(raw, form)
		return err
	})
}

// readElicitation reads an answer and validates its content against form, if that is not nil.
func readElicitation(raw json.RawMessage, form *schema.Schema) (*mcp.ElicitResult, error) {
	var r mcp.ElicitResult
	if !rawjson.IsObject(raw) || mcp.Decode(raw, &r) != nil {
		return nil, errAskAgain
	}
	switch r.Action {
	case mcp.ElicitDecline, mcp.ElicitCancel:
		return &r, nil
	case mcp.ElicitAccept:
	default:
		return nil, errAskAgain
	}
	if form == nil {
		return &r, nil
	}
	if r.Content == nil {
		r.Content = json.RawMessage("{}")
	}
	if form.Validate(r.Content) != nil {
		return nil, errAskAgain
	}
	return &r, nil
}

// formSchema is the form that a user fills in.
type formSchema struct {
	schema    *schema.Schema
	described json.RawMessage
	single    bool // one field, because T is not a struct
}

// singleField is the form of a value that is not a struct.
type singleField[T any] struct {
	Value T `json:"value"`
}

func newForm[T any]() (f formSchema, err error) {
	if t := reflect.TypeFor[T](); t.Kind() == reflect.Struct && !isText(t) {
		f.schema, err = schema.Form[T]()
	} else {
		f.single = true
		f.schema, err = schema.Form[singleField[T]]()
	}
	if err != nil {
		return f, err
	}
	f.described = f.schema.JSON()
	return f, nil
}

// compileForm compiles a hand-written schema, which must describe a flat object.
func compileForm(raw json.RawMessage) (*schema.Schema, error) {
	s, err := schema.Compile(raw)
	if err != nil {
		return nil, err
	}
	if s.Type() != "object" || rawjson.Lookup(raw, "properties") == nil {
		return nil, errors.New("a form's schema must be an object with properties")
	}
	for _, p := range s.Properties() {
		if !isFormField(p) {
			return nil, fmt.Errorf("%s: a form can ask for strings, numbers, booleans and choices among strings only", p.Name)
		}
	}
	return s, nil
}

func isFormField(p schema.Property) bool {
	switch p.Type {
	case "string", "number", "integer", "boolean":
		return true
	case "array":
		return isStringChoice(rawjson.Lookup(p.Schema, "items"))
	}
	return false
}

// isStringChoice reports whether a schema accepts some strings and nothing else.
func isStringChoice(items []byte) bool {
	var choice struct {
		Type  string   `json:"type"`
		Enum  []string `json:"enum"`
		AnyOf []struct {
			Const *string `json:"const"`
		} `json:"anyOf"`
	}
	if mcp.Decode(items, &choice) != nil || choice.Type != "string" && choice.Type != "" {
		return false
	}
	for _, c := range choice.AnyOf {
		if c.Const == nil {
			return false
		}
	}
	return len(choice.Enum)+len(choice.AnyOf) > 0
}
