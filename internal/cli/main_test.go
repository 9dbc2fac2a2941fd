package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/clitest"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/modelkeys"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"go.uber.org/goleak"
)

// If childVariable is set, the test binary runs as dowel, or as a test server if its first argument
// is serverWord.
const (
	childVariable = "DOWEL_TEST_CHILD"
	serverWord    = "a-server-for-tests"
	traceVariable = "DOWEL_TEST_TRACE" // a file to which the server writes its events
	// longGraceVariable makes dowel wait for minutes before it takes a missing file for removed.
	longGraceVariable = "DOWEL_TEST_LONG_GRACE"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(childVariable) == "":
		os.Setenv(childVariable, "1")
		os.Setenv("DOWEL_KEYRING", "off") // the keyring of the machine is not a part of the tests
		home := clitest.EmptyHome()
		os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // otherwise each child of a -race run sleeps for a second
		code := runWireChecked(m.Run)
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Println("goroutines are left behind:", err)
			code = 1
		}
		os.RemoveAll(home)
		os.Exit(code)
	case len(os.Args) > 1 && os.Args[1] == serverWord:
		if err := stdio.Serve(context.Background(), testServer()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case len(os.Args) > 1 && os.Args[1] == taskServerWord:
		_ = stdio.Serve(context.Background(), newTaskServer())
	case len(os.Args) > 2 && os.Args[1] == changingWord:
		serveChanging(os.Args[2])
	default:
		modelkeys.Hide()
		connect.WatchWire = checkWire
		if os.Getenv(longGraceVariable) != "" {
			configured.DefaultMissingGrace = polltest.Limit
		}
		os.Exit(Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
}

// withTestServer appends the command of the test server to words.
func withTestServer(t *testing.T, words ...string) []string {
	t.Helper()
	return append(append(words[:len(words):len(words)], "--"), testBinary(t), serverWord)
}

func testBinary(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// output is the result of a run of dowel.
type output struct {
	stdout, stderr string
	code           int
}

// runDowel runs dowel in this process.
func runDowel(t *testing.T, stdin string, words ...string) output {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), words, strings.NewReader(stdin), &stdout, &stderr)
	return output{stdout.String(), stderr.String(), code}
}

// newCommand returns a command that runs dowel in another process.
func newCommand(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), polltest.Limit)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, testBinary(t), words...)
}

var pixel, _ = base64.StdEncoding.DecodeString(
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")

// everyField is a form with a field of each kind.
const everyField = `{"type":"object","properties":{
	"name":{"type":"string","title":"Your name","description":"As on your passport","minLength":2},
	"age":{"type":"integer","minimum":0,"maximum":150,"default":30},
	"agree":{"type":"boolean"},
	"colour":{"type":"string","oneOf":[{"const":"#f00","title":"Red"},{"const":"#0f0","title":"Green"}]},
	"days":{"type":"array","items":{"type":"string","enum":["mon","tue","wed"]},"minItems":1},
	"mail":{"type":"string","format":"email"}
},"required":["name","colour"]}`

type addIn struct {
	A    int      `json:"a" doc:"The first summand"`
	B    int      `json:"b" doc:"The second summand"`
	More []int    `json:"more,omitempty" doc:"Further summands"`
	Tags []string `json:"tags,omitempty"`
	Unit struct {
		Name string `json:"name"`
	} `json:"unit,omitzero"`
}

type addOut struct {
	Sum  int    `json:"sum"`
	Unit string `json:"unit,omitzero"`
}

func testServer() mcp.Handler {
	s := server.New("tester", "1.2.3", &server.Options{Instructions: "Be gentle.", PageSize: 4})
	addTools(s)
	addQuestions(s)
	server.Resource(s, "test://text", "A text.", func(context.Context, struct{}) (string, error) {
		return "line one\nline two\n", nil
	}, server.ResourceOptions{Name: "the text", MIMEType: "text/plain"})
	server.Resource(s, "test://pixel", "A picture.", func(context.Context, struct{}) (mcp.Content, error) {
		return mcp.Image(pixel, "image/png"), nil
	})
	server.Resource(s, "test://item/{id}", "An item.", func(_ context.Context, v struct {
		ID string `uri:"id"`
	}) (string, error) {
		return "item " + v.ID, nil
	})
	server.Prompt(s, "greet", "Greet somebody.", func(_ context.Context, in struct {
		Name string `json:"name" doc:"Who is greeted"`
		Tone string `json:"tone,omitempty" enum:"warm,cold"`
	}) (string, error) {
		return "Greet " + in.Name + "!", nil
	})
	server.Resource(s, "test://ticking", "Changes all the time.", func(context.Context, struct{}) (string, error) { return "tick", nil })
	go func() { // runs until the process ends
		for range time.Tick(50 * time.Millisecond) {
			s.Updated("test://ticking")
		}
	}()
	return addInvalidOutput(s)
}

// addInvalidOutput adds a tool that answers with a result that its output schema forbids.
func addInvalidOutput(s *server.Server) mcp.Handler {
	s.Add(mustItem(server.NewRawTool(mcp.Tool{
		Name: "lie", InputSchema: json.RawMessage(`{"type":"object"}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
	}, func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
		return nil, errors.New("not reached")
	})))
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		if req.Method == mcp.MethodCallTool && strings.Contains(string(req.Params), `"name":"lie"`) {
			return &mcp.Result{Raw: json.RawMessage(`{"content":[],"structuredContent":{"n":"one"}}`)}, nil
		}
		return s.ServeMCP(ctx, req)
	})
}

func mustItem(item server.Item, err error) server.Item {
	if err != nil {
		panic(err)
	}
	return item
}

func writeTrace(text string) {
	if file := os.Getenv(traceVariable); file != "" {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			panic(err)
		}
	}
}

func addTools(s *server.Server) {
	server.Tool(s, "echo", "Says it again.\nIn full.", func(_ context.Context, in struct {
		Message string `json:"message" doc:"What to say"`
	}) (string, error) {
		return in.Message, nil
	}, server.ToolOptions{Annotations: mcp.ReadOnly})
	server.Tool(s, "add", "Adds numbers.", func(_ context.Context, in addIn) (addOut, error) {
		out := addOut{Sum: in.A + in.B, Unit: in.Unit.Name}
		for _, n := range in.More {
			out.Sum += n
		}
		return out, nil
	})
	server.Tool(s, "structured", "Has no text.", func(context.Context, struct{}) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: json.RawMessage(`{"deep":{"er":1}}`)}, nil
	})
	server.Tool(s, "fail", "Fails.", func(context.Context, struct{}) (string, error) { return "", errors.New("out of cheese") })
	server.Tool(s, "picture", "Returns a picture.", func(context.Context, struct{}) ([]mcp.Content, error) {
		return []mcp.Content{mcp.Text("behold"), mcp.Image(pixel, "image/png"), mcp.Audio([]byte("RIFF"), "audio/wav")}, nil
	})
	server.Tool(s, "die", "Ends its server.", func(context.Context, struct{}) (string, error) {
		fmt.Fprintln(os.Stderr, "last words of the server")
		os.Exit(7)
		return "", nil
	})
	server.Tool(s, "steps", "Makes progress and logs.", func(ctx context.Context, _ struct{}) (string, error) {
		server.Log(ctx).Warn("the cheese is low")
		server.Progress(ctx, 1, 2, "half way")
		server.Progress(ctx, 2, 2, "there")
		return "done", nil
	})
	server.Tool(s, "wait", "Waits to be cancelled.", func(ctx context.Context, _ struct{}) (string, error) {
		server.Progress(ctx, 1, 100, "waiting")
		writeTrace("waiting")
		<-ctx.Done()
		writeTrace("cancelled")
		return "", ctx.Err()
	})
	server.Tool(s, "lines", "Returns many lines.", func(context.Context, struct{}) (string, error) {
		return strings.Repeat("a line that is not too short\n", 20_000), nil
	})
	server.Tool(s, "escape", "Returns what a terminal obeys.", func(context.Context, struct{}) (string, error) {
		return "red \x1b[31mtext\x1b[0m and a title \x1b]0;owned\x07.", nil
	})
}

func addQuestions(s *server.Server) {
	server.Tool(s, "form", "Asks for everything.", func(ctx context.Context, _ struct{}) (string, error) {
		res, err := server.AskRaw(ctx, "form", mcp.ElicitParams{Message: "Who are you?", RequestedSchema: json.RawMessage(everyField)})
		if err != nil {
			return "", err
		}
		return string(res.Action) + " " + string(res.Content), nil
	})
	server.Tool(s, "name", "Asks for a name.", func(ctx context.Context, _ struct{}) (string, error) {
		name, err := server.Ask[string](ctx, "name", "What is your name?")
		return "hello " + name, err
	})
	server.Tool(s, "visit", "Asks to visit a page.", func(ctx context.Context, in struct {
		URL string `json:"url"`
	}) (string, error) {
		res, err := server.AskRaw(ctx, "visit", mcp.ElicitParams{Mode: mcp.ElicitURL, Message: "Log in, please.", URL: in.URL})
		if err == nil && res.Action != mcp.ElicitAccept {
			err = errors.New(string(res.Action))
		}
		return "thank you", err
	})
	server.Tool(s, "model", "Asks a model.", func(ctx context.Context, _ struct{}) (string, error) {
		res, err := server.Sample(ctx, "model", mcp.CreateMessageParams{MaxTokens: 10})
		if err != nil {
			return "", err
		}
		return "the model says " + res.Text(), nil
	})
	server.Tool(s, "roots", "Asks for roots.", func(ctx context.Context, _ struct{}) (string, error) {
		roots, err := server.Roots(ctx)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(roots), nil
	})
	server.Tool(s, "grow", "Adds a tool.", func(context.Context, struct{}) (string, error) {
		err := s.Add(mustItem(server.NewTool("grown", "New.", func(context.Context, struct{}) (string, error) { return "", nil })))
		return "grown", err
	})
}
