package wiretest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Validator holds single frames against the schema of one protocol revision.
// Formats (uri, uri-template, base64) are asserted in every revision. A
// Validator is safe for concurrent use; schemas are compiled when first needed.
type Validator struct {
	revision string
	names    *definitions

	mu       sync.Mutex // the compiler is not safe for concurrent use
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

var validators = struct {
	sync.Mutex
	of map[string]*Validator
}{of: map[string]*Validator{}}

// For returns the one Validator of a revision such as "2025-11-25". It fails
// for a revision that [Revisions] does not list.
func For(revision string) (*Validator, error) {
	if !slices.Contains(Revisions(), revision) {
		return nil, fmt.Errorf("wiretest: no schema of revision %q; there are %s", revision, strings.Join(Revisions(), ", "))
	}
	validators.Lock()
	defer validators.Unlock()
	if v := validators.of[revision]; v != nil {
		return v, nil
	}
	v, err := loadValidator(revision)
	if err != nil {
		return nil, err
	}
	validators.of[revision] = v
	return v, nil
}

func loadValidator(revision string) (*Validator, error) {
	text, err := schemas.ReadFile("testdata/" + revision + "/schema.json")
	if err != nil {
		return nil, fmt.Errorf("wiretest: schema of %s: %w", revision, err)
	}
	decoded, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("wiretest: schema of %s: %w", revision, err)
	}
	document := object(decoded)
	correctSchema(document)
	v := &Validator{
		revision: revision,
		names:    readDefinitions(document),
		compiler: jsonschema.NewCompiler(),
		compiled: map[string]*jsonschema.Schema{},
	}
	v.compiler.AssertFormat()
	v.compiler.RegisterFormat(&jsonschema.Format{Name: "byte", Validate: base64Text})
	v.compiler.RegisterFormat(&jsonschema.Format{Name: "uri", Validate: uriText})
	v.compiler.RegisterFormat(&jsonschema.Format{Name: "uri-template", Validate: templateText})
	if err := v.compiler.AddResource(v.location(), document); err != nil {
		return nil, fmt.Errorf("wiretest: schema of %s: %w", revision, err)
	}
	return v, nil
}

func base64Text(value any) error {
	s, ok := value.(string)
	if !ok {
		return nil
	}
	_, err := base64.StdEncoding.DecodeString(s)
	return err
}

func (v *Validator) location() string { return "mcp:///" + v.revision + "/schema.json" }

// Revision returns the protocol revision of the schema.
func (v *Validator) Revision() string { return v.revision }

// Definition checks JSON text against one definition of the schema by its
// name, such as "Tool" or "CallToolRequestParams".
func (v *Validator) Definition(name string, text []byte) error {
	value, err := decodeFrame(text)
	if err != nil {
		return err
	}
	return v.validateAs(name, value)
}

// Message checks a frame that from sent: a request or notification against the
// definition of its method (an unknown method only against JSONRPCRequest or
// JSONRPCNotification), and whether that role may send it. A response is only
// checked for its envelope; [Validator.Response] knows more. A batch passes
// in 2025-03-26 only, and each of its messages is checked.
func (v *Validator) Message(frame []byte, from Role) error {
	value, err := decodeFrame(frame)
	if err != nil {
		return err
	}
	items, ok := value.([]any)
	if !ok {
		return v.validateMessage(value, from)
	}
	errs := []error{v.validateBatch(items)}
	for i, item := range items {
		if err := v.validateMessage(item, from); err != nil {
			errs = append(errs, fmt.Errorf("batch item %d: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

func (v *Validator) validateMessage(value any, from Role) error {
	m, err := parseMessage(value)
	if err != nil {
		return err
	}
	switch m.kind {
	case result:
		return v.validateAs(v.names.firstDefined("JSONRPCResultResponse", "JSONRPCResponse"), m.value)
	case failure:
		return v.validateError(m)
	}
	return errors.Join(v.checkDirection(m, from), v.validateOutgoing(m))
}

func (v *Validator) validateBatch(items []any) error {
	if !v.names.has("JSONRPCBatchRequest") {
		return fmt.Errorf("revision %s has no batches", v.revision)
	}
	if len(items) == 0 {
		return errors.New("batch is empty")
	}
	return v.validateAs("JSONRPCMessage", items)
}

// checkDirection checks that the sender's role may send this method, and that it is a request or a
// notification as the schema defines it.
func (v *Validator) checkDirection(m *message, from Role) error {
	mine, others := v.names.requests[from], v.names.requests[from.peer()]
	if m.kind == notification {
		mine, others = v.names.notifications[from], v.names.notifications[from.peer()]
	} else if from == Server && len(mine) == 0 {
		return fmt.Errorf("a server sends no requests in %s; %q has to be an input request", v.revision, m.method)
	}
	if _, ok := mine[m.method]; ok {
		return nil
	}
	if _, ok := others[m.method]; ok {
		return fmt.Errorf("%q is not for a %s to send in %s", m.method, from, v.revision)
	}
	_, isRequest := v.names.requestName(m.method)
	_, isNotification := v.names.notificationName(m.method)
	if isRequest || isNotification {
		return fmt.Errorf("%q is a notification sent with an id, or a request sent without", m.method)
	}
	return nil
}

// validateOutgoing checks the form of a request or notification. Up to 2025-06-18 the
// definition of a method leaves out jsonrpc and id, so both are checked.
func (v *Validator) validateOutgoing(m *message) error {
	envelope, name, ok := "JSONRPCRequest", "", false
	if m.kind == notification {
		envelope = "JSONRPCNotification"
		name, ok = v.names.notificationName(m.method)
	} else {
		name, ok = v.names.requestName(m.method)
	}
	err := v.validateAs(envelope, m.value)
	if err != nil || !ok {
		return err
	}
	return v.validateAs(name, m.value)
}

// Response checks a response to a request of the given method: an error by its code, a result
// against, for example, CallToolResult. An interim result is checked as such: resultType
// input_required, or a task member in 2025-11-25. A resultType that the revision does not know is
// checked as a bare Result.
//
// An error without an id answers a frame that could not be read. It passes in every revision,
// although schemas up to 2025-06-18 require an id.
func (v *Validator) Response(method string, frame []byte) error {
	value, err := decodeFrame(frame)
	if err != nil {
		return err
	}
	m, err := parseMessage(value)
	if err != nil {
		return err
	}
	return v.validateResponse(method, m)
}

func (v *Validator) validateResponse(method string, m *message) error {
	switch m.kind {
	case failure:
		return v.validateError(m)
	case result:
		envelope := v.names.firstDefined("JSONRPCResultResponse", "JSONRPCResponse")
		if err := v.validateAs(envelope, m.value); err != nil {
			return err
		}
		return v.validateAs(v.resultName(method, m.result), m.value["result"])
	}
	return fmt.Errorf("%q is not a response", m.method)
}

func (v *Validator) resultName(method string, result map[string]any) string {
	if isModern(v.revision) {
		switch result["resultType"] {
		case "complete", nil:
			return v.names.resultName(method)
		case "input_required":
			return "InputRequiredResult"
		}
		return "Result"
	}
	if result["task"] != nil && slices.Contains(augmentable, method) && v.names.has("CreateTaskResult") {
		return "CreateTaskResult"
	}
	return v.names.resultName(method)
}

// augmentable are the methods that 2025-11-25 can run as tasks.
var augmentable = []string{"tools/call", "sampling/createMessage", "elicitation/create"}

func (v *Validator) validateError(m *message) error {
	value := m.value
	if _, ok := value["id"]; !ok && v.names.has("JSONRPCError") {
		value = withID(value)
	}
	if err := v.validateAs(v.names.firstDefined("JSONRPCErrorResponse", "JSONRPCError"), value); err != nil {
		return err
	}
	code, _ := object(value, "error")["code"].(json.Number)
	if name, ok := v.names.errors[code.String()]; ok {
		return v.validateAs(name, value)
	}
	return nil
}

// withID adds a substitute for the id that an older schema requires.
func withID(members map[string]any) map[string]any {
	with := map[string]any{"id": "unreadable"}
	for name, member := range members {
		with[name] = member
	}
	return with
}

func (v *Validator) validateAs(name string, value any) error {
	schema, err := v.compileSchema(name)
	if err != nil {
		return err
	}
	err = schema.Validate(value)
	if err == nil {
		return nil
	}
	// The first line names the schema's location, which the name says better.
	_, details, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("not a %s of %s: %s", name, v.revision, strings.TrimSpace(details))
}

func (v *Validator) compileSchema(name string) (*jsonschema.Schema, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if schema := v.compiled[name]; schema != nil {
		return schema, nil
	}
	if !v.names.has(name) {
		return nil, fmt.Errorf("wiretest: revision %s defines no %q", v.revision, name)
	}
	schema, err := v.compiler.Compile(v.location() + "#/" + v.names.keyword + "/" + name)
	if err != nil {
		return nil, fmt.Errorf("wiretest: schema of %s: %w", v.revision, err)
	}
	v.compiled[name] = schema
	return schema, nil
}

// uriPattern follows RFC 3986 as far as it does not depend on the scheme. net/url refuses valid
// URIs, for example with a percent-encoded host.
var uriPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*$`)

// RFC 6570: literals and expressions.
var templatePattern = regexp.MustCompile(`^(?:[^{}\x00-\x20"'<>\\^` + "`" + `|]|\{[+#./;?&=,!@|]?[A-Za-z0-9_.%,:*]+\})*$`)

func uriText(v any) error { return matchPattern(v, uriPattern, "uri") }

func templateText(v any) error { return matchPattern(v, templatePattern, "uri template") }

func matchPattern(v any, pattern *regexp.Regexp, what string) error {
	if s, ok := v.(string); ok && !pattern.MatchString(s) {
		return fmt.Errorf("%q is no %s", s, what)
	}
	return nil
}
