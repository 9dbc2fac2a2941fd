package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// answerPrompt is shown when a form waits for an answer.
const answerPrompt = ">\x1b[0m "

func TestFormOnTerminal(t *testing.T) {
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			p := onTerminal(t, withTestServer(t, "call", "form", "--revision", revision)...)
			p.expect("tester\x1b[0m \x1b[2m(")
			p.expect("asks:\r\n  Who are you?")
			p.expect("Your name\x1b[0m")
			p.expect("As on your passport")
			p.typeText("A\n")
			p.expect("at least 2")
			p.typeText("Ada\n")
			p.expect("Enter takes 30")
			p.typeText("\n")
			p.expect("agree\x1b[0m")
			p.typeText("yes\n")
			p.expect("1) Red")
			p.expect("2) Green")
			p.typeText("2\n")
			p.expect("3) wed")
			p.typeText("1,wed\n")
			p.expect("mail\x1b[0m")
			p.typeText("\n")
			p.expect("Send this to tester? [Y/n/edit]")
			p.typeText("\n")
			p.expect(`accept {"name":"Ada","age":30,"agree":true,"colour":"#0f0","days":["mon","wed"]}`)
			p.expectExit(exit.OK)
		})
	}
}

func TestQuestionsOfOneField(t *testing.T) {
	t.Parallel()
	p := onTerminal(t, withTestServer(t, "call", "name")...)
	p.expect("What is your name?")
	p.expect(answerPrompt)
	p.typeText("Ada\n")
	p.expect("hello Ada")
	p.expectExit(exit.OK)
}

func TestQuestionsCanBeRefused(t *testing.T) {
	for _, test := range []struct{ name, answer, notice, result string }{
		{"declined", "/decline\n", "declined", "declined"},
		{"left", "\x04", "left unanswered", "dismissed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := onTerminal(t, withTestServer(t, "call", "name")...)
			p.expect(answerPrompt)
			p.typeText(test.answer)
			p.expect(test.notice)
			p.expect("dowel:")
			p.expect(test.result)
			p.expectExit(exit.Failed)
		})
	}
}

func TestFormCanBeEdited(t *testing.T) {
	t.Parallel()
	p := onTerminal(t, withTestServer(t, "call", "form", "--answer", "colour=#f00", "--answer", "age=1", "--answer", "agree=true", "--answer", "days=mon")...)
	p.expect(answerPrompt)
	p.typeText("Bob\n")
	p.expect("colour: \"#f00\"")
	p.expect(answerPrompt)
	p.typeText("bob@example.com\n")
	p.expect("[Y/n/edit]")
	p.typeText("edit\n")
	p.expect(answerPrompt)
	p.typeText("Ann\n")
	p.expect(answerPrompt)
	p.typeText("\n")
	p.expect("[Y/n/edit]")
	p.typeText("y\n")
	p.expect(`"name":"Ann"}`)
	p.expectExit(exit.OK)
}

// dowel shows a page's full URL, and opens it without a shell if the user agrees.
func TestVisitOnTerminal(t *testing.T) {
	const (
		page   = "https://login.example.com/x?a=1&b=$(touch%20owned);c#d"
		opened = "https://login.example.com/x?a=1&b=%24%28touch%20owned%29%3Bc#d" // xdg-open is a shell script
	)
	for _, test := range []struct {
		name, answer string
		code         int
		opened       bool
	}{
		{"open", "o\n", exit.OK, true},
		{"myself", "m\n", exit.OK, false},
		{"no", "\n", exit.Failed, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := t.TempDir()
			trace := filepath.Join(folder, "opened")
			script := "#!/bin/sh\nprintf '%s|' \"$@\" > '" + trace + ".part' && mv '" + trace + ".part' '" + trace + "'\n"
			if err := os.WriteFile(filepath.Join(folder, "xdg-open"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
			t.Setenv("DISPLAY", ":99")
			p := onTerminal(t, withTestServer(t, "call", "visit", "url="+page)...)
			p.expect("Log in, please.")
			p.expect("https://\x1b[1;4mlogin.example.com\x1b[0m/x?a=1&b=$(touch%20owned);c#d")
			p.expect("Nothing has been opened.")
			p.expect("[N]o:")
			if _, err := os.Stat(trace); err == nil {
				t.Error("it was opened without consent")
			}
			p.typeText(test.answer)
			p.expectExit(test.code)
			if !test.opened {
				if _, err := os.Stat(trace); err == nil {
					t.Error("it was opened")
				}
				return
			}
			if got := awaitFile(t, trace); got != opened+"|" {
				t.Errorf("opened with %q", got)
			}
		})
	}
}

// dowel does not fetch a page that it shows, neither before nor after the user's answer.
func TestPagesAreNotFetched(t *testing.T) {
	t.Parallel()
	fetched := make(chan string, 1)
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case fetched <- r.URL.Path:
		default:
		}
	}))
	defer web.Close()
	p := onTerminal(t, withTestServer(t, "call", "visit", "url="+web.URL+"/page")...)
	p.expect("[N]o:")
	p.typeText("m\n")
	p.expectExit(exit.OK)
	select {
	case path := <-fetched:
		t.Errorf("%s was fetched", path)
	default:
	}
}

func TestOnlyWebPagesAreVisited(t *testing.T) {
	t.Parallel()
	p := onTerminal(t, withTestServer(t, "call", "visit", "url=file:///etc/passwd")...)
	p.expect("dowel opens web pages only.")
	p.expectExit(exit.Failed)
}

func TestProgressOnTerminal(t *testing.T) {
	t.Parallel()
	p := onTerminal(t, withTestServer(t, "call", "steps")...)
	p.expect("\r\x1b[K[##########----------] 1/2 half way")
	p.expect("\r\x1b[K")
	p.expect("done\r\n")
	p.expectExit(exit.OK)
	if all := p.output(); !strings.HasSuffix(all, "\r\x1b[Kdone\r\n") {
		t.Errorf("something is left of the progress: %q", all)
	}
}

func TestTerminalIsNotObeyed(t *testing.T) {
	t.Parallel()
	p := onTerminal(t, withTestServer(t, "call", "escape")...)
	p.expect("red text and a title .")
	p.expectExit(exit.OK)
}

// Ctrl-C on the terminal cancels the call before the server ends.
func TestInterruptOnTerminal(t *testing.T) {
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			trace := filepath.Join(t.TempDir(), "trace")
			t.Setenv(traceVariable, trace)
			p := onTerminal(t, withTestServer(t, "call", "wait", "--wire", "--revision", revision)...)
			p.expect("1/100 waiting")
			p.typeText("\x03")
			p.expect("stopping")
			p.expect("notifications/cancelled")
			p.expect("the user ended dowel (interrupt)")
			p.expectExit(exit.Interrupted)
			if got := awaitFile(t, trace); got != "cancelled" {
				t.Errorf("the server saw %q", got)
			}
		})
	}
}

// Ctrl-C ends a question.
func TestInterruptOfQuestion(t *testing.T) {
	t.Parallel()
	p := onTerminal(t, withTestServer(t, "call", "name")...)
	p.expect(answerPrompt)
	p.typeText("\x03")
	p.expectExit(exit.Interrupted)
}

// awaitFile waits until a file exists and returns its text.
func awaitFile(t *testing.T, file string) string {
	t.Helper()
	var content []byte
	polltest.Until(t, "text in "+file, func() bool {
		content, _ = os.ReadFile(file)
		return len(content) > 0
	})
	return string(content)
}
