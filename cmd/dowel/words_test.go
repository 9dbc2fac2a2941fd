package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/spf13/cobra"
)

func TestSplitName(t *testing.T) {
	known := []string{"kv", "kv.eu", "everything"}
	for _, test := range []struct{ word, name, thing string }{
		{"kv", "kv", ""},
		{"kv.", "kv", ""},
		{"kv.get", "kv", "get"},
		{"kv.eu", "kv.eu", ""},
		{"kv.eu.get", "kv.eu", "get"},
		{"kv.eur", "kv", "eur"},
		{"everything.a.b", "everything", "a.b"},
		{"kvx", "", ""},
		{"everythng.echo", "", ""},
	} {
		name, thing, err := splitName(test.word, known)
		if name != test.name || thing != test.thing || (err == nil) != (test.name != "") {
			t.Errorf("%s: got %q, %q, %v, want %q, %q", test.word, name, thing, err, test.name, test.thing)
		}
	}
	if _, _, err := splitName("everythng.echo", known); !strings.Contains(err.Error(), "did you mean everything?") {
		t.Errorf("no suggestion in %v", err)
	}
}

func TestAim(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		words   string
		command []string
		rest    string
		fails   string
	}{
		{words: "everything", command: []string{self, "serve", "everything"}},
		{words: "everything.echo a=b", command: []string{self, "serve", "everything"}, rest: "echo a=b"},
		{words: "everything echo a=b", command: []string{self, "serve", "everything"}, rest: "echo a=b"},
		{words: "everything test://x", command: []string{self, "serve", "everything"}, rest: "test://x"},
		{words: "everything.echo a=b -- npx -y --flag x", command: []string{"npx", "-y", "--flag", "x"}, rest: "everything.echo a=b"},
		{words: "-- npx", command: []string{"npx"}},
		{words: "-e A=1 -e B=x=y --dir / -- npx", command: []string{"npx"}},
		{words: "", fails: "no server is named"},
		{words: "--", fails: "there is no command behind --"},
		{words: "nobody.echo", fails: "no server is called nobody"},
		{words: "--url http://x -- npx", fails: "named twice"},
		{words: "--url http://x -e A=1", fails: "for servers that are started"},
		{words: "-e A -- npx", fails: "KEY=VALUE"},
	} {
		t.Run(test.words, func(t *testing.T) {
			var got target
			var rest []string
			var w whence
			cmd := &cobra.Command{SilenceErrors: true, SilenceUsage: true, Args: cobra.ArbitraryArgs}
			w.register(cmd)
			cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
				got, rest, err = w.aim(cmd, args)
				return err
			}
			cmd.SetArgs(append([]string{}, strings.Fields(test.words)...))
			err := cmd.Execute()
			if test.fails != "" {
				if exitCode(err) != exitUsage || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("got %v, want a usage error with %q", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			command := got.dial.(stdio.Command)
			if have := append([]string{command.Path}, command.Args...); !slices.Equal(have, test.command) {
				t.Errorf("starts %q, want %q", have, test.command)
			}
			if strings.Join(rest, " ") != test.rest {
				t.Errorf("the rest is %q, want %q", rest, test.rest)
			}
			if strings.Contains(test.words, "-e") && (command.Env["A"] != "1" || command.Env["B"] != "x=y" || command.Dir != "/") {
				t.Errorf("environment %v, folder %q", command.Env, command.Dir)
			}
		})
	}
}

func TestExitCode(t *testing.T) {
	call := func(err error) error { return &client.CallError{Server: "s", Method: "m", Err: err} }
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{call(errReaderGone), 0},
		{failure{"t", "no"}, 1},
		{errors.New("disk full"), 1},
		{usagef("no"), 2},
		{call(fmt.Errorf("asking: %w", usagef("no"))), 2},
		{connectError{"s", errors.New("no")}, 3},
		{connectError{"s", mcp.Errorf(-32602, "no")}, 3},
		{call(fmt.Errorf("%w: gone", mcp.ErrConnection)), 3},
		{call(mcp.Errorf(-32602, "no")), 4},
		{call(errors.New("the result cannot be read")), 4},
		{call(&client.OutputError{Tool: "t", Err: errors.New("no")}), 4},
		{call(&client.TimeoutError{Kind: client.TimeoutTotal, After: time.Second}), 124},
		{connectError{"s", &client.TimeoutError{Kind: client.TimeoutConnect}}, 124},
		{call(&interruption{os.Interrupt}), 130},
		{connectError{"s", &interruption{syscall.SIGTERM}}, 143},
	} {
		if got := exitCode(test.err); got != test.want {
			t.Errorf("%v: got %d, want %d", test.err, got, test.want)
		}
	}
}

func TestAdvice(t *testing.T) {
	for want, err := range map[string]error{
		"--timeout":         &client.TimeoutError{Kind: client.TimeoutTotal},
		"--idle-timeout":    &client.TimeoutError{Kind: client.TimeoutIdle},
		"--connect-timeout": &client.TimeoutError{Kind: client.TimeoutConnect},
		"--answer":          (&mcp.CapabilityError{Required: mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{}}}).Protocol(),
		"--sample-text":     (&mcp.CapabilityError{Required: mcp.ClientCapabilities{Sampling: &mcp.SamplingCapability{}}}).Protocol(),
		"--root":            (&mcp.CapabilityError{Required: mcp.ClientCapabilities{Roots: &mcp.RootsCapability{}}}).Protocol(),
	} {
		if got := advice(err); !strings.Contains(got, want) {
			t.Errorf("%v: got %q, want %s in it", err, got, want)
		}
	}
}

func TestSuggestion(t *testing.T) {
	known := []string{"get-sum", "echo", "get_weather"}
	for _, test := range []struct{ word, want string }{
		{"get_sum", "; did you mean get-sum?"},
		{"ehco", "; did you mean echo?"},
		{"getweather", "; did you mean get_weather?"},
		{"zzz", "; there are get-sum, echo, get_weather"},
	} {
		if got := suggestion(test.word, known); got != test.want {
			t.Errorf("%s: got %q, want %q", test.word, got, test.want)
		}
	}
	if got := suggestion("x", nil); got != "" {
		t.Errorf("nothing is known, and still: %q", got)
	}
}

func TestPrintable(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"plain\n\ttext ü 🙂", "plain\n\ttext ü 🙂"},
		{"a\x1b[31mb\x1b[0mc", "abc"},
		{"a\x1b]0;title\x07b", "ab"},
		{"a\x1b]8;;http://x\x1b\\b", "ab"},
		{"a\rb\x00c\x7f\u009bd", "abcd"},
		{"user\u202egpj.exe", "usergpj.exe"},
		{"bad \xff byte", "bad \uFFFD byte"},
	} {
		if got := printable(test.text); got != test.want {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

func TestWrap(t *testing.T) {
	got := wrap([]string{"aaa", "bb", "ccccccccc", "d"}, 6)
	if want := []string{"aaa bb", "ccccccccc", "d"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEffects(t *testing.T) {
	yes, no := true, false
	for _, test := range []struct {
		hints *mcp.ToolAnnotations
		want  string
	}{
		{nil, ""},
		{&mcp.ToolAnnotations{}, ""},
		{&mcp.ToolAnnotations{ReadOnlyHint: &yes, DestructiveHint: &yes, IdempotentHint: &yes, OpenWorldHint: &no}, "read-only"},
		{&mcp.ToolAnnotations{ReadOnlyHint: &no, DestructiveHint: &yes, OpenWorldHint: &yes}, "destructive, open world"},
		{&mcp.ToolAnnotations{DestructiveHint: &no, IdempotentHint: &yes}, "additive, idempotent"},
	} {
		if got := effects(&mcp.Tool{Annotations: test.hints}); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.hints, got, test.want)
		}
	}
}
