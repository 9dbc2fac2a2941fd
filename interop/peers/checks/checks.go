// Package checks has the checks that the Go clients of this module run against a server. Each
// client is written with another SDK and implements [Client]; the checks are the same.
package checks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/interop/peers/contract"
	"github.com/dowel-mcp/dowel/interop/peers/report"
)

// The answers of a client to a server's questions: its only root, the model's reply, and the value
// of name fields in forms.
const (
	RootURI   = "file:///srv/interop-root"
	ModelSaid = "Paris"
	UserName  = "ada"
)

// Form is the content with which a client accepts every form. It has a value for each field that
// the servers of this module ask for.
var Form = map[string]any{
	"username": UserName, "email": "ada@example.com", "name": UserName, "color": "blue", "ok": true, "context": "a test",
}

// Client adapts the client of an SDK to the checks.
type Client interface {
	// Version is the revision that was negotiated.
	Version() string
	// List returns the names or URIs of all pages of a list: tools, prompts, resources, templates.
	List(ctx context.Context, kind string) ([]string, error)
	// Call calls a tool. If progress is not nil, it is called for each progress notification.
	Call(ctx context.Context, tool string, args map[string]any, progress func(done float64)) (Result, error)
	// SetLevel asks for log messages of this level and above during later calls.
	SetLevel(ctx context.Context, level string) error
	// Read reads a resource that has a single part.
	Read(ctx context.Context, uri string) (Part, error)
	// Prompt returns the text of a prompt.
	Prompt(ctx context.Context, name string, args map[string]string) (string, error)
	// Complete completes an argument of a prompt.
	Complete(ctx context.Context, prompt, argument, value string) ([]string, error)
	// Watch subscribes to updates of a resource.
	Watch(ctx context.Context, uri string) error
	// Ping pings a legacy server.
	Ping(ctx context.Context) error
	// IsCode reports whether err is an error of the server with this JSON-RPC code.
	IsCode(err error, code int) bool
	// Close ends the connection.
	Close() error
}

// Result is a tool's result.
type Result struct {
	Text    string
	Kinds   []string // the type of each content block
	IsError bool
	// Structured is the structured content as JSON, or "".
	Structured string
}

// Part is one part of a resource.
type Part struct {
	URI, MIMEType, Text string
	Blob                string // base64
}

// Heard counts the notifications and questions of a server that its client has received, by method.
// It is safe for concurrent use.
type Heard struct {
	mu    sync.Mutex
	count map[string]int
}

// Add counts one message.
func (h *Heard) Add(method string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count == nil {
		h.count = map[string]int{}
	}
	h.count[method]++
}

// Count returns the number of messages with a method.
func (h *Heard) Count(method string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count[method]
}

// wait waits until more than before messages of a method have been received.
func (h *Heard) wait(method string, before int, limit time.Duration) error {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if h.Count(method) > before {
			return nil
		}
	}
	return fmt.Errorf("the client did not receive %s within %v", method, limit)
}

const (
	invalidParams    = -32602
	resourceNotFound = -32002
	withStructured   = "2025-06-18" // the first revision with structured content
	modern           = "2026-07-28"
)

// Run runs all checks. The client must count the server's notifications and questions in heard.
func Run(r *report.Report, c Client, heard *Heard) {
	s := suite{r, c, heard}
	s.lists()
	s.contents()
	s.calls()
	s.errors()
	s.reads()
	s.questions()
	s.changes()
}

type suite struct {
	*report.Report
	c     Client
	heard *Heard
}

// run runs a check with a context that ends after report.Limit.
func (s suite) run(name string, check func(ctx context.Context) error) {
	s.Run(name, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), report.Limit)
		defer cancel()
		return check(ctx)
	})
}

func same[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

func contains(what, got, want string) error {
	if !strings.Contains(got, want) {
		return fmt.Errorf("%s: %q is not in %q", what, want, got)
	}
	return nil
}

func (s suite) lists() {
	for _, list := range [][2]string{
		{"tools", contract.Echo}, {"prompts", contract.ArgsPrompt}, {"resources", contract.TextURI}, {"templates", contract.DataURI},
	} {
		kind, want := list[0], list[1]
		s.run("list "+kind, func(ctx context.Context) error {
			names, err := s.c.List(ctx, kind)
			if err != nil {
				return err
			}
			if !slices.Contains(names, want) {
				return fmt.Errorf("%s is not among %v", want, names)
			}
			slices.Sort(names)
			return same("names that come once", len(slices.Compact(names)), len(names))
		})
	}
}

// call checks that a tool answers without error and that its text contains want.
func (s suite) call(name, tool string, args map[string]any, want string) {
	s.run(name, func(ctx context.Context) error {
		result, err := s.c.Call(ctx, tool, args, nil)
		if err != nil {
			return err
		}
		return errors.Join(same("isError", result.IsError, false), contains("text", result.Text, want))
	})
}

func (s suite) contents() {
	s.call("text", contract.SimpleText, nil, contract.SimpleAnswer)
	for _, block := range [][2]string{
		{"image", "test_image_content"}, {"audio", "test_audio_content"}, {"resource", "test_embedded_resource"},
	} {
		name, tool := block[0], block[1]
		s.run(name, func(ctx context.Context) error {
			result, err := s.c.Call(ctx, tool, nil, nil)
			return errors.Join(err, same("kinds", strings.Join(result.Kinds, " "), name))
		})
	}
	s.run("mixed content", func(ctx context.Context) error {
		result, err := s.c.Call(ctx, "test_multiple_content_types", nil, nil)
		slices.Sort(result.Kinds)
		return errors.Join(err, same("kinds", strings.Join(result.Kinds, " "), "image resource text"))
	})
	s.run("tool error", func(ctx context.Context) error {
		result, err := s.c.Call(ctx, contract.Failing, nil, nil)
		return errors.Join(err, same("isError", result.IsError, true),
			contains("text", strings.ToLower(result.Text), strings.ToLower(contract.FailingAnswer)))
	})
}

func (s suite) calls() {
	s.call("echo", contract.Echo, map[string]any{"message": "grüße, 世界, 𝄞"}, "grüße, 世界, 𝄞")
	big := strings.Repeat("x", 1<<20)
	s.call("echo 1 MiB", contract.Echo, map[string]any{"message": big}, big)
	s.call("add", contract.Add, map[string]any{"a": 19, "b": 23}, "42")
	if s.c.Version() >= withStructured {
		s.run("structured content", s.structuredContent)
	}
	s.run("echo 50 at once", s.parallelCalls)
	s.run("progress", s.progress)
	s.run("cancel a call", s.cancelCall)
	s.run("cancel reaches the server", s.cancelled)
	s.run("logging", s.logging)
	s.run("completion", s.completion)
	if s.c.Version() < modern {
		s.run("ping", s.c.Ping)
	}
}

func (s suite) structuredContent(ctx context.Context) error {
	result, err := s.c.Call(ctx, contract.Add, map[string]any{"a": 19, "b": 23}, nil)
	return errors.Join(err, contains("structured content", result.Structured, "42"))
}

// parallelCalls makes 50 calls at once.
func (s suite) parallelCalls(ctx context.Context) error {
	errs := make([]error, 50)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			message := fmt.Sprintf("message %d.", i)
			result, err := s.c.Call(ctx, contract.Echo, map[string]any{"message": message}, nil)
			errs[i] = errors.Join(err, contains("text", result.Text, message))
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// progress expects the three steps of the tool.
func (s suite) progress(ctx context.Context) error {
	var mu sync.Mutex
	var steps []float64
	_, err := s.c.Call(ctx, contract.Progress, nil, func(done float64) {
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, done)
	})
	time.Sleep(100 * time.Millisecond) // an SDK may deliver notifications after the result
	mu.Lock()
	defer mu.Unlock()
	return errors.Join(err, same("progress", fmt.Sprint(steps), fmt.Sprint([]float64{0, 50, 100})))
}

// cancelCall cancels a call at its first progress, and expects the next call to work.
func (s suite) cancelCall(ctx context.Context) error {
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err := s.c.Call(short, contract.Progress, nil, func(float64) { cancel() })
	if err == nil {
		return errors.New("the call was answered")
	}
	result, err := s.c.Call(ctx, contract.SimpleText, nil, nil)
	return errors.Join(err, contains("the next call", result.Text, contract.SimpleAnswer))
}

func (s suite) completion(ctx context.Context) error {
	values, err := s.c.Complete(ctx, contract.ArgsPrompt, "arg1", "")
	if err == nil && len(values) == 0 {
		return errors.New("no value for an empty argument")
	}
	return err
}

// cancelled cancels a call that ends only when it is cancelled, and then asks the server whether
// its handler was cancelled.
func (s suite) cancelled(ctx context.Context) error {
	before, err := s.c.Call(ctx, contract.Cancelled, nil, nil)
	if err != nil {
		return err
	}
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	if _, err := s.c.Call(short, contract.Wait, nil, func(float64) { cancel() }); err == nil {
		return errors.New("the call was answered")
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		after, err := s.c.Call(ctx, contract.Cancelled, nil, nil)
		if err != nil || after.Text != before.Text {
			return err
		}
	}
	return errors.New("the server's handler was not cancelled")
}

// logging expects the tool's three messages at level info, and none of them at level error.
func (s suite) logging(ctx context.Context) error {
	const method = "notifications/message"
	count := func(level string) (int, error) {
		if err := s.c.SetLevel(ctx, level); err != nil {
			return 0, err
		}
		before := s.heard.Count(method)
		_, err := s.c.Call(ctx, contract.Logging, nil, nil)
		time.Sleep(200 * time.Millisecond) // the messages may arrive after the result
		return s.heard.Count(method) - before, err
	}
	loud, err := count("info")
	quiet, quietErr := count("error")
	return errors.Join(err, quietErr, same("messages at level info", loud, 3), same("messages at level error", quiet, 0))
}

// refused checks that ask fails with one of the codes.
func (s suite) refused(name string, ask func(ctx context.Context) error, codes ...int) {
	s.run(name, func(ctx context.Context) error {
		err := ask(ctx)
		if err == nil {
			return errors.New("the request succeeded")
		}
		if !slices.ContainsFunc(codes, func(code int) bool { return s.c.IsCode(err, code) }) {
			return fmt.Errorf("got %w, want one of the codes %v", err, codes)
		}
		return nil
	})
}

func (s suite) errors() {
	s.refused("unknown tool", func(ctx context.Context) error {
		_, err := s.c.Call(ctx, "no_such_tool", nil, nil)
		return err
	}, invalidParams)
	s.refused("unknown prompt", func(ctx context.Context) error {
		_, err := s.c.Prompt(ctx, "no_such_prompt", nil)
		return err
	}, invalidParams)
	s.refused("unknown resource", func(ctx context.Context) error {
		_, err := s.c.Read(ctx, contract.MissingURI)
		return err
	}, invalidParams, resourceNotFound)
	s.run("invalid arguments", func(ctx context.Context) error {
		result, err := s.c.Call(ctx, contract.Add, map[string]any{"a": "nineteen", "b": 23}, nil)
		return errors.Join(err, same("isError", result.IsError, true))
	})
}

func (s suite) reads() {
	for _, want := range []Part{
		{URI: contract.TextURI, MIMEType: "text/plain", Text: contract.TextContent},
		{URI: contract.BinaryURI, MIMEType: "image/png", Blob: contract.PNG},
		{URI: "test://template/123/data", MIMEType: "application/json", Text: contract.Data("123")},
	} {
		s.run("read "+want.URI, func(ctx context.Context) error {
			got, err := s.c.Read(ctx, want.URI)
			if err == nil && want.MIMEType == "application/json" {
				got.Text = strings.NewReplacer(`": `, `":`, `, "`, `,"`).Replace(got.Text) // spaces do not matter
			}
			return errors.Join(err, same("part", got, want))
		})
	}
	s.run("prompt", func(ctx context.Context) error {
		text, err := s.c.Prompt(ctx, contract.ArgsPrompt, map[string]string{"arg1": "one", "arg2": "two"})
		return errors.Join(err, same("text", text, contract.Greeting("one", "two")))
	})
}

// asks checks a tool that asks the client a question with this method. want is part of the tool's
// text.
func (s suite) asks(name, method, tool string, args map[string]any, want string) {
	s.run(name, func(ctx context.Context) error {
		before := s.heard.Count(method)
		result, err := s.c.Call(ctx, tool, args, nil)
		if err == nil && s.heard.Count(method) == before {
			err = fmt.Errorf("the client was not asked (%s)", method)
		}
		return errors.Join(err, same("isError", result.IsError, false), contains("text", result.Text, want))
	})
}

func (s suite) questions() {
	s.asks("elicitation", "elicitation/create", contract.AskUser, map[string]any{"message": "Who are you?"}, UserName)
	s.asks("sampling", "sampling/createMessage", contract.AskModel, map[string]any{"prompt": "Name a city."}, "LLM response: "+ModelSaid)
	s.call("roots", contract.AskRoots, nil, RootURI)
	s.asks("several questions", "sampling/createMessage", "test_input_required_result_multiple_inputs", nil, "")
	s.asks("several rounds", "elicitation/create", "test_input_required_result_multi_round", nil, "")
	s.asks("question with state", "elicitation/create", "test_input_required_result_request_state", nil, "state-ok")
	s.run("prompt that asks", func(ctx context.Context) error {
		before := s.heard.Count("elicitation/create")
		_, err := s.c.Prompt(ctx, "test_input_required_result_prompt", nil)
		if err == nil && s.heard.Count("elicitation/create") == before {
			err = errors.New("the client was not asked")
		}
		return err
	})
}

func (s suite) changes() {
	s.run("tool list changed", func(ctx context.Context) error {
		const method = "notifications/tools/list_changed"
		before := s.heard.Count(method)
		if _, err := s.c.Call(ctx, contract.ToolChange, nil, nil); err != nil {
			return err
		}
		return s.heard.wait(method, before, 2*time.Second)
	})
	s.run("watched resource", func(ctx context.Context) error {
		if err := s.c.Watch(ctx, contract.WatchedURI); err != nil {
			return err
		}
		return s.heard.wait("notifications/resources/updated", 0, 8*time.Second)
	})
}
