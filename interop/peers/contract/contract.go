// Package contract has the names and texts of the features that the servers of this module offer
// and its clients check. It is a part of the contract of dowel's everything server, so that one set
// of checks fits all.
package contract

import (
	"fmt"
	"strings"
	"time"
)

// The tools. Echo takes message, Add takes a and b, AskUser takes message, AskModel takes prompt;
// the others take nothing.
const (
	SimpleText = "test_simple_text"
	Echo       = "echo"
	Add        = "add"
	Failing    = "test_error_handling"
	Progress   = "test_tool_with_progress"
	AskUser    = "test_elicitation"
	AskModel   = "test_sampling"
	AskRoots   = "test_input_required_result_list_roots"
	ToolChange = "test_trigger_tool_change"
	Logging    = "test_tool_with_logging"
	Wait       = "wait_for_cancel" // reports progress, and then waits until it is cancelled, up to WaitLimit
	Cancelled  = "count_cancelled" // returns the number of cancelled calls of Wait
)

// The prompts.
const (
	SimplePrompt = "test_simple_prompt"
	ArgsPrompt   = "test_prompt_with_arguments"
)

// The resources.
const (
	TextURI     = "test://static-text"
	BinaryURI   = "test://static-binary"
	WatchedURI  = "test://watched-resource"
	DataURI     = "test://template/{id}/data"
	MissingURI  = "test://nonexistent-resource-for-conformance-testing"
	WatchPeriod = 500 * time.Millisecond // time between two updates of WatchedURI
)

// The answers of the servers.
const (
	SimpleAnswer  = "This is a simple text response for testing."
	FailingAnswer = "This tool intentionally returns an error for testing"
	TextContent   = "This is the content of the static text resource."
	PNG           = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)

// ProgressStep is the time between the three progress notifications of Progress.
const ProgressStep = 50 * time.Millisecond

// WaitLimit bounds a call of Wait.
const WaitLimit = 15 * time.Second

// LogMessages are the messages of Logging, of level info.
var LogMessages = []string{"Tool execution started", "Tool processing data", "Tool execution completed"}

// UserSchema is the form that AskUser asks for.
var UserSchema = map[string]any{
	"type": "object",
	"properties": map[string]any{
		"username": map[string]any{"type": "string", "description": "A name"},
		"email":    map[string]any{"type": "string", "description": "An address"},
	},
	"required": []string{"username", "email"},
}

// Data returns the content of a resource of the template DataURI.
func Data(id string) string {
	return fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id)
}

// DataID returns the id in a URI of the template DataURI, or "" for other URIs.
func DataID(uri string) string {
	rest, ok := strings.CutPrefix(uri, "test://template/")
	id, found := strings.CutSuffix(rest, "/data")
	if !ok || !found {
		return ""
	}
	return id
}

// Greeting returns the text of ArgsPrompt.
func Greeting(arg1, arg2 string) string {
	return fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", arg1, arg2)
}

// Completions returns the values that arg1 of ArgsPrompt completes to.
func Completions(prefix string) []string {
	values := []string{}
	for _, value := range []string{"alpha", "beta", "testValue1"} {
		if strings.HasPrefix(value, prefix) {
			values = append(values, value)
		}
	}
	return values
}
