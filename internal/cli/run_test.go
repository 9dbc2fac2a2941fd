package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/term"
)

func TestOutput(t *testing.T) {
	for _, test := range []struct {
		words []string
		want  string
	}{
		{[]string{"call", "echo", "message=hello"}, "hello\n"},
		{[]string{"call", "echo", "--args", `{"message":"hello"}`}, "hello\n"},
		{[]string{"call", "echo", "--unchecked", "message=5x"}, "5x\n"},
		{[]string{"call", "add", "a=19", "b=23"}, `{"sum":42}` + "\n"},
		{[]string{"call", "add", "a=1", "b=2", "more=3", "more=4", "unit.name=kg"}, `{"sum":10,"unit":"kg"}` + "\n"},
		{[]string{"call", "structured"}, "{\n  \"deep\": {\n    \"er\": 1\n  }\n}\n"},
		{[]string{"call", "picture"}, "behold\n[image image/png, 70 bytes; -o FILE saves it]\n[audio audio/wav, 4 bytes; -o FILE saves it]\n"},
		{[]string{"call", "escape"}, "red \x1b[31mtext\x1b[0m and a title \x1b]0;owned\x07.\n"},
		{[]string{"read", "test://text"}, "line one\nline two\n"},
		{[]string{"read", "test://item/7"}, "item 7\n"},
		{[]string{"read", "test://pixel"}, "[resource image/png, 70 bytes test://pixel; -o FILE saves it]\n"},
		{[]string{"prompt", "greet", "name=Ada"}, "user:\nGreet Ada!\n"},
		{[]string{"complete", "greet", "name=Ada", "tone=w"}, "warm\n"},
		{[]string{"resources"}, "" +
			"test://text                                                           text/plain\n  the text: A text.\n" +
			"test://pixel\n  test://pixel: A picture.\n" +
			"test://ticking\n  test://ticking: Changes all the time.\n" +
			"test://item/{id}                                                        template\n  test://item/{id}: An item.\n"},
		{[]string{"prompts"}, "greet\n  name= [tone=]\n  Greet somebody.\n"},
	} {
		t.Run(strings.Join(test.words, " "), func(t *testing.T) {
			t.Parallel()
			out := runDowel(t, "", withTestServer(t, test.words...)...)
			if out.code != exit.OK || out.stdout != test.want || out.stderr != "" {
				t.Errorf("exit code %d\nstdout: %s\nwant:   %s\nstderr: %s", out.code, out.stdout, test.want, out.stderr)
			}
		})
	}
}

func TestTools(t *testing.T) {
	out := runDowel(t, "", withTestServer(t, "tools")...)
	for _, want := range []string{
		"echo                                                                   read-only\n  message=string\n  Says it again.\n",
		"add\n  a=integer b=integer [more=integer…] [tags=string…] [unit=object]\n  Adds numbers.\n",
		"visit\n", // on the second page of the list
	} {
		if !strings.Contains(out.stdout, want) {
			t.Errorf("no %q in\n%s", want, out.stdout)
		}
	}
	out = runDowel(t, "", withTestServer(t, "tools", "add")...)
	for _, want := range []string{"add\nAdds numbers.\n", "\n  a  integer, required\n    The first summand\n", "\nreturns\n\n  sum  integer"} {
		if !strings.Contains(out.stdout, want) {
			t.Errorf("no %q in\n%s", want, out.stdout)
		}
	}
}

func TestDiscover(t *testing.T) {
	for _, test := range []struct{ revision, want string }{
		{"", "revision      2026-07-28 (modern)\n"},
		{"2025-06-18", "revision      2025-06-18 (legacy)\n"},
	} {
		out := runDowel(t, "", withTestServer(t, "discover", "--revision", test.revision)...)
		for _, want := range []string{"name          tester\n", "version       1.2.3\n", test.want, "tools", "\nBe gentle.\n"} {
			if !strings.Contains(out.stdout, want) {
				t.Errorf("no %q in\n%s%s", want, out.stdout, out.stderr)
			}
		}
	}
}

func TestJSON(t *testing.T) {
	for _, test := range []struct {
		words []string
		want  string // a prefix of the output
	}{
		{[]string{"tools"}, `{"tools":[{"name":"echo","description":"Says it again.\nIn full.","inputSchema":{`},
		{[]string{"tools", "echo"}, `{"name":"echo","description":"Says it again.\nIn full.","inputSchema":{`},
		{[]string{"resources"}, `{"resources":[{"uri":"test://text"`},
		{[]string{"prompts"}, `{"prompts":[{"name":"greet"`},
		{[]string{"discover"}, `{"revision":"2026-07-28","era":"modern","result":{`},
		{[]string{"call", "echo", "message=x"}, `{"content":[{"type":"text","text":"x"}]`},
		{[]string{"call", "picture"}, `{"content":[{"type":"text","text":"behold"},{"type":"image","data":"iVBOR`},
		{[]string{"read", "test://pixel"}, `{"contents":[{"uri":"test://pixel","mimeType":"image/png","blob":"iVBOR`},
		{[]string{"prompt", "greet", "name=Ada"}, `{"messages":[{"role":"user"`},
		{[]string{"complete", "greet", "tone="}, `{"completion":{"values":["warm","cold"]`},
	} {
		t.Run(strings.Join(test.words, " "), func(t *testing.T) {
			t.Parallel()
			out := runDowel(t, "", withTestServer(t, append(test.words, "--json")...)...)
			if out.code != exit.OK || out.stderr != "" {
				t.Errorf("exit code %d, stderr: %s", out.code, out.stderr)
			}
			var document any
			if err := json.Unmarshal([]byte(out.stdout), &document); err != nil {
				t.Errorf("%v: %s", err, out.stdout)
			}
			for _, part := range strings.Split(strings.Trim(test.want, "{"), ",") {
				if !strings.Contains(out.stdout, part) {
					t.Errorf("no %s in %s", part, out.stdout)
				}
			}
		})
	}
}

func TestResourcesJSONHasTemplates(t *testing.T) {
	out := runDowel(t, "", withTestServer(t, "resources", "--json")...)
	if !strings.Contains(out.stdout, `"uriTemplate":"test://item/{id}"`) || strings.Contains(out.stdout, "nextCursor") {
		t.Errorf("got %s", out.stdout)
	}
}

func TestFailures(t *testing.T) {
	for _, test := range []struct {
		words []string
		code  int
		says  string
		alone bool // without the server's command after --
	}{
		{[]string{"call", "fail"}, 1, "dowel: fail: out of cheese\n", false},
		{[]string{"call", "echo", "message=x", "-o", "/nonexistent/file"}, 1, "saving the result: open /nonexistent/file", false},
		{[]string{"call", "echo"}, 2, "dowel: argument message (string) is missing: What to say\n  see dowel tools echo -- …\n", false},
		{[]string{"call", "ecko"}, 2, "dowel: there is no tool ecko; did you mean echo?\n  see dowel tools -- …\n", false},
		{[]string{"call", "echo", "mesage=x"}, 2, "there is no argument mesage; did you mean message?", false},
		{[]string{"call", "add", "a=x", "b=1"}, 2, `argument a: must be a whole number, and "x" is not`, false},
		{[]string{"call", "echo", "message"}, 2, "write key=value", false},
		{[]string{"call", "echo", "--args", "[]"}, 2, "must be an object", false},
		{[]string{"call"}, 2, "no tool is named", false},
		{[]string{"prompt", "greet"}, 2, "argument name is missing: Who is greeted", false},
		{[]string{"prompt", "greet", "name=x", "nme=y"}, 2, "there is no argument nme; did you mean name?", false},
		{[]string{"prompt", "gret"}, 2, "there is no prompt gret; did you mean greet?", false},
		{[]string{"read"}, 2, "one URI", false},
		{[]string{"tools", "-O", "a=b"}, 2, "--option is for built-in servers", false},
		{[]string{"serve"}, 2, "no server is named: there are everything", true},
		{[]string{"serve", "evrything"}, 2, "did you mean everything?", true},
		{[]string{"serve", "everything", "page-sise=2"}, 2, "did you mean page-size?", true},
		{[]string{"tools", "--revision", "2020-01-01"}, 2, "dowel speaks [2026-07-28", false},
		{[]string{"tools", "--log", "loud"}, 2, "the levels are [debug", false},
		{[]string{"tools", "--root", "/nonexistent"}, 2, "--root /nonexistent", false},
		{[]string{"tools", "--timeout", "soon"}, 2, "--timeout", false},
		{[]string{"call", "--message", "x"}, 2, "write arguments of tools and prompts without dashes: message=…", false},
		{[]string{"tols"}, 2, `unknown command "tols"`, true},
		{[]string{"tools", "--", "/nonexistent/server"}, 3, "no connection to /nonexistent/server: start", true},
		{[]string{"tools", "--url", "http://localhost/mcp", "--"}, 2, "there is no command after --", true},
		{[]string{"call", "die"}, 3, "exit status 7; its last words on stderr:\n  \tlast words of the server", false},
		{[]string{"read", "test://nothing"}, 4, "resource not found: test://nothing", false},
		{[]string{"call", "lie"}, 4, "does not match its own output schema", false},
		{[]string{"call", "echo", "--unchecked"}, 1, "message", false},
		{[]string{"call", "nothing", "--unchecked"}, 4, "nothing", false},
		{[]string{"call", "name"}, 4, "answer with --answer key=value", false},
		{[]string{"call", "model"}, 4, "--sample-text", false},
		{[]string{"call", "roots"}, 4, "--root", false},
		{[]string{"call", "wait", "--timeout", "300ms"}, 124, "raise the limit with --timeout", false},
		{[]string{"call", "wait", "--idle-timeout", "300ms"}, 124, "raise the limit with --idle-timeout", false},
	} {
		t.Run(strings.Join(test.words, " "), func(t *testing.T) {
			t.Parallel()
			words := test.words
			if !test.alone {
				words = withTestServer(t, words...)
			}
			out := runDowel(t, "", words...)
			if out.code != test.code || !strings.Contains(out.stderr, test.says) {
				t.Errorf("exit code %d, want %d\nstderr: %s\nwant:   %s", out.code, test.code, out.stderr, test.says)
			}
		})
	}
}

func TestErrorAsJSON(t *testing.T) {
	out := runDowel(t, "", withTestServer(t, "read", "test://nothing", "--json")...)
	var line struct {
		Error struct {
			Message string
			Exit    int
			Code    int
			Data    any
		}
	}
	if err := json.Unmarshal([]byte(out.stderr), &line); err != nil {
		t.Fatalf("%v: %s", err, out.stderr)
	}
	if line.Error.Exit != exit.Protocol || line.Error.Code != -32602 || line.Error.Data == nil || out.stdout != "" {
		t.Errorf("got %+v and %s", line.Error, out.stdout)
	}
}

// With --json, the result of a failed tool is shown in full.
func TestToolFailureAsJSON(t *testing.T) {
	out := runDowel(t, "", withTestServer(t, "call", "fail", "--json")...)
	if out.code != exit.Failed || !strings.Contains(out.stdout, `"isError":true`) || !strings.Contains(out.stderr, `"exit":1`) {
		t.Errorf("exit code %d, stdout %s, stderr %s", out.code, out.stdout, out.stderr)
	}
}

// With --json all of stderr is JSON, including the server's own stderr.
func TestStderrOfTheServerAsJSON(t *testing.T) {
	out := runDowel(t, "", "tools", "--json", "-v", "--", "sh", "-c", "echo 'two words' >&2; printf rest >&2; exec \"$@\"", "sh", testBinary(t), serverWord)
	var said []string
	for _, line := range strings.Split(strings.TrimSpace(out.stderr), "\n") {
		var l struct{ Stderr string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		said = append(said, l.Stderr)
	}
	if out.code != 0 || !slices.Contains(said, "two words") || !slices.Contains(said, "rest") {
		t.Errorf("exit code %d, stderr %s", out.code, out.stderr)
	}
}

func TestWire(t *testing.T) {
	out := runDowel(t, "", withTestServer(t, "call", "echo", "message=hi", "--wire", "--revision", "2025-06-18")...)
	lines := strings.Split(strings.TrimSpace(out.stderr), "\n")
	for i, want := range []string{
		`→ .*"method":"initialize"`, `← .*"serverInfo"`, `→ .*notifications/initialized`, `→ .*tools/list`, `← .*"tools"`,
	} {
		arrow, frame, _ := strings.Cut(want, ".*")
		if i >= len(lines) || !strings.HasPrefix(lines[i], strings.TrimSpace(arrow)) || !strings.Contains(lines[i], frame) || !strings.Contains(lines[i], "ms ") {
			t.Errorf("line %d is not %s:\n%s", i, want, out.stderr)
		}
	}
	if out.stdout != "hi\n" {
		t.Errorf("stdout: %s", out.stdout)
	}
}

func TestWireAsJSON(t *testing.T) {
	// One server starts with a line of text, another with JSON that is not a message.
	script := `echo 'Starting up'; echo '{"level":"info"}'; exec "$0" ` + serverWord
	out := runDowel(t, "", "call", "echo", "message=hi", "--wire", "--json", "--", "sh", "-c", script, testBinary(t))
	kinds := map[string]int{}
	for line := range strings.Lines(out.stderr) {
		var frame struct {
			Wire  string
			MS    *float64
			Frame json.RawMessage
			Text  string
		}
		if err := json.Unmarshal([]byte(line), &frame); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		if frame.Wire != "" && (frame.MS == nil || frame.Frame == nil && frame.Text == "") {
			t.Errorf("incomplete: %s", line)
		}
		kinds[frame.Wire+frame.Text]++
	}
	if kinds["sent"] < 3 || kinds["received"] < 3 || kinds["strayStarting up"] != 1 || kinds["stray"] != 1 {
		t.Errorf("got %v in\n%s", kinds, out.stderr)
	}
}

func TestProgressAndLogs(t *testing.T) {
	out := runDowel(t, "", withTestServer(t, "call", "steps", "-v", "--log", "info")...)
	for _, want := range []string{"[##########----------] 1/2 half way\n", "[####################] 2/2 there\n", "[warning] the cheese is low\n"} {
		if !strings.Contains(out.stderr, want) {
			t.Errorf("no %q in %s", want, out.stderr)
		}
	}
	if out := runDowel(t, "", withTestServer(t, "call", "steps")...); out.stderr != "" {
		t.Errorf("nobody asked for %s", out.stderr)
	}
	out = runDowel(t, "", withTestServer(t, "call", "steps", "-v", "--json", "--log", "info")...)
	for _, want := range []string{`{"progress":{"message":"half way","progress":1,"total":2}}`, `{"log":{"level":"warning","data":"the cheese is low"}}`} {
		if !strings.Contains(out.stderr, want) {
			t.Errorf("no %s in %s", want, out.stderr)
		}
	}
}

func TestSave(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "out.png")
	out := runDowel(t, "", withTestServer(t, "call", "picture", "-o", file)...)
	if !strings.Contains(out.stdout, "behold\n") || !strings.Contains(out.stdout, file) {
		t.Errorf("stdout: %s", out.stdout)
	}
	holds := func(file string, want []byte) {
		t.Helper()
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s holds %q, %v", file, got, err)
		}
	}
	holds(file, pixel)
	holds(filepath.Join(folder, "out-2.png"), []byte("RIFF"))
	text := filepath.Join(folder, "text")
	if out := runDowel(t, "", withTestServer(t, "read", "test://text", "-o", text)...); out.stdout != "" || out.code != exit.OK {
		t.Errorf("exit code %d, stdout: %s", out.code, out.stdout)
	}
	holds(text, []byte("line one\nline two\n"))
	out = runDowel(t, "", withTestServer(t, "read", "test://pixel", "-o", "-")...)
	if out.stdout != string(pixel) {
		t.Errorf("stdout: %q", out.stdout)
	}
	jsonFile := filepath.Join(folder, "json.png")
	if out := runDowel(t, "", withTestServer(t, "read", "test://pixel", "-o", jsonFile, "--json")...); !strings.HasPrefix(out.stdout, "{") {
		t.Errorf("stdout: %s", out.stdout)
	}
	holds(jsonFile, pixel)
}

func TestAnswers(t *testing.T) {
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			on := func(words ...string) output {
				return runDowel(t, "", withTestServer(t, append(words, "--revision", revision)...)...)
			}
			out := on("call", "form", "--answer", "name=Ada", "--answer", "colour=#0f0", "--answer", "days=mon", "--answer", "days=wed")
			if want := `accept {"name":"Ada","colour":"#0f0","days":["mon","wed"],"age":30}` + "\n"; out.stdout != want || out.stderr != "" {
				t.Errorf("got %s%s, want %s", out.stdout, out.stderr, want)
			}
			out = on("call", "form", "--answer", "name=Ada")
			if !strings.Contains(out.stderr, `tester asks "Who are you?"; run dowel on a terminal, or add --answer colour=… (`) {
				t.Errorf("stderr: %s", out.stderr)
			}
			out = on("call", "form", "--answer", "name=A", "--answer", "colour=#0f0")
			if !strings.Contains(out.stderr, "--answer name: ") {
				t.Errorf("stderr: %s", out.stderr)
			}
			if out := on("call", "model", "--sample-text", "42"); out.stdout != "the model says 42\n" {
				t.Errorf("got %s%s", out.stdout, out.stderr)
			}
			folder := t.TempDir()
			if out := on("call", "roots", "--root", folder); !strings.Contains(out.stdout, "file://"+filepath.ToSlash(folder)+" ") {
				t.Errorf("got %s%s", out.stdout, out.stderr)
			}
		})
	}
}

func TestArgsFromStandardInput(t *testing.T) {
	out := runDowel(t, `{"message":"from stdin"}`, withTestServer(t, "call", "echo", "--args", "@-")...)
	if out.stdout != "from stdin\n" {
		t.Errorf("got %s%s", out.stdout, out.stderr)
	}
}

func TestHelp(t *testing.T) {
	for _, test := range []struct {
		words []string
		want  []string
	}{
		{nil, []string{"What a server offers:", "dowel call everything.echo message=hello", "exit-codes"}},
		{[]string{"help", "exit-codes"}, []string{"124", "130", "--idle-timeout"}},
		{[]string{"--version"}, []string{"dowel ", "go1."}},
		{[]string{"completion", "bash"}, []string{"__dowel"}},
		{[]string{"__complete", "tools", ""}, []string{"everything\n"}},
		{[]string{"__complete", "call", "everything.e"}, []string{"everything.echo\n"}},
		{[]string{"__complete", "serve", "everything", ""}, []string{"page-size=\n"}},
	} {
		out := runDowel(t, "", test.words...)
		for _, want := range test.want {
			if out.code != exit.OK || !strings.Contains(out.stdout, want) {
				t.Errorf("%v: exit code %d, no %q in\n%s", test.words, out.code, want, out.stdout)
			}
		}
	}
}

// The help of each command has two to four examples, and tells how to name a server and what the
// output is.
func TestEveryCommandHasExamples(t *testing.T) {
	f := &factory.Factory{}
	f.Stdout, f.Stderr = term.NewScreen(&bytes.Buffer{}, nil), term.NewScreen(&bytes.Buffer{}, nil)
	for _, c := range newRoot(f).Commands() {
		if !c.Runnable() || c.Name() == "completion" || c.Name() == "help" {
			continue
		}
		if n := len(strings.Split(c.Example, "\n")); n < 2 || n > 4 {
			t.Errorf("%s has %d examples", c.Name(), n)
		}
		if c.Long == "" || c.Short == "" {
			t.Errorf("%s is not described", c.Name())
		}
	}
}
