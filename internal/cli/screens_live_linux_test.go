package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// The parts of these screens that differ between runs: the milliseconds of a time, the size and the
// time of a call, the page of a login, a port to forward, the link of the console.
var (
	wireEnd       = regexp.MustCompile(`\s+[\d.]+ ?k?B?\s+[\d.]+ ?(µs|ms|s)$`)
	screenSeconds = regexp.MustCompile(`\b\d+\.\d+s\b`)
	screenMillis  = regexp.MustCompile(`^#\.\d{3}`)
	loginPage     = regexp.MustCompile(`(http://127\.0\.0\.1:\d+/authorize)\S+`)
	forwardedPort = regexp.MustCompile(`ssh -L \d+:`)
	consoleLink   = regexp.MustCompile(`(http://127\.0\.0\.1:\d+/)\S+`)
)

// maskLive is maskVolatile for these screens. It keeps the width of what it masks.
func maskLive(rows []string) []string {
	mask := func(found string) string { return strings.Repeat(" ", len([]rune(found))-1) + "#" }
	for i, row := range rows {
		rows[i] = screenSeconds.ReplaceAllString(wireEnd.ReplaceAllStringFunc(row, mask), "#s")
	}
	rows = maskVolatile(rows)
	for i, row := range rows {
		rows[i] = screenMillis.ReplaceAllString(row, "#")
	}
	return rows
}

// screenRows returns the rows on the terminal, with short names for the folders of the user.
func (p *testUser) screenRows(terminal *pty, program string, columns uint16) []string {
	text := strings.NewReplacer(p.home, "~", p.project, "/project", program, "/bin/dowel").Replace(terminal.output())
	text = consoleLink.ReplaceAllString(loginPage.ReplaceAllString(text, "$1?…"), "$1…")
	text = forwardedPort.ReplaceAllString(text, "ssh -L #:")
	rows := maskLive(renderScreen(text, int(columns), 24))
	if at := slices.IndexFunc(rows, func(row string) bool { return strings.Contains(row, "^C") }); at >= 0 {
		rows = rows[:at]
	}
	return rows
}

// Live wire and watch show calls and changes in lines.
func TestLiveScreens(t *testing.T) {
	t.Parallel()
	for _, columns := range screenWidths {
		p, program := newScreenUser(t)
		p.writeFile(p.userFile(), `{"mcpServers": {"ev": `+p.builtInEntry("everything", "")+`}}`)
		p.startDaemon()
		p.awaitStates(map[string]hub.Status{"ev": hub.Ready})
		terminal := startOnTerminal(t, p.newCommand("wire", "method:tools/call"), columns, 24)
		polltest.Until(t, "wire shows calls", func() bool {
			p.runDowel("call", "ev.echo", "message=first")
			return strings.Contains(terminal.output(), "echo")
		})
		p.runDowel("call", "ev.add", "a=19", "b=23")
		p.runDowel("call", "ev.test_error_handling")
		terminal.expect("add {")
		terminal.expect("tool-error: ")
		terminal.typeText("\x03")
		_ = terminal.cmd.Wait()
		<-terminal.ended
		rows := slices.DeleteFunc(p.screenRows(terminal, program, columns), func(row string) bool { return strings.Contains(row, "echo") })
		compareScreen(t, "wire", columns, rows)

		terminal = startOnTerminal(t, p.newCommand("watch", "ev", "test://watched-resource", "--count", "1"), columns, 24)
		polltest.Until(t, "watch shows a change", func() bool {
			p.runDowel("call", "ev.test_trigger_resource_update")
			select {
			case <-terminal.ended:
				return true
			default:
				return strings.Contains(terminal.output(), "updated")
			}
		})
		terminal.expectExit(0)
		<-terminal.ended
		compareScreen(t, "watch", columns, p.screenRows(terminal, program, columns))
	}
}

// A conversation with the call of a tool, by lines and on the whole screen.
func TestConversationScreens(t *testing.T) {
	t.Parallel()
	for _, columns := range screenWidths {
		for name, flags := range map[string][]string{"chat-plain": {"--plain"}, "chat-screen": nil} {
			p, _ := newScreenUser(t)
			m := startModel(t, `{"turns": [{"calls": [{"name": "everything__add", "arguments": {"a": 19, "b": 23}}]},
				{"expect": ["42"], "text": "The sum of 19 and 23 is **42**.", "usage": {"input": 1200, "output": 12}}]}`)
			words := append([]string{"chat", "--model", "gpt-test", "--base-url", m.url, "--server", "everything"}, flags...)
			terminal := startOnTerminal(t, p.newCommand(words...), columns, 24)
			await := func(text string) {
				t.Helper()
				defer func() {
					if t.Failed() {
						t.Logf("the screen:\n%s", terminal.screenOfSize(columns, 24))
					}
				}()
				polltest.Until(t, "the screen shows "+text, func() bool { return strings.Contains(terminal.screenOfSize(columns, 24), text) })
			}
			await(map[string]string{"chat-plain": "(44 tools)\n>", "chat-screen": "(44 tools)"}[name])
			terminal.typeText("How much is 19 and 23?\r")
			await("1,200 tokens read")
			await(map[string]string{"chat-plain": "\n>", "chat-screen": "1k token"}[name])
			// The texts above may be there before the rest of their frame.
			compareScreenOnceSettled(t, name, columns, func() []string {
				rows := strings.Split(terminal.screenOfSize(columns, 24), "\n")
				for i, row := range rows {
					rows[i] = strings.TrimRight(strings.ReplaceAll(row, "\r", ""), " ")
				}
				return maskLive(rows)
			})
			terminal.typeText("\x04")
			terminal.expectExit(0)
		}
	}
}

// A login, a search, an installation, the console and the service as they succeed.
func TestSuccessScreens(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	resource := protectEverything(t, as)
	registry := startRegistry(t, map[string]string{"io.github.acme/weather": `{"name":"io.github.acme/weather","title":"Weather","description":"Forecasts and warnings for the whole world, by the hour and by the day, from the national weather services.","version":"1.2.3",
		"packages":[{"registryType":"npm","identifier":"@acme/weather","version":"1.2.3","transport":{"type":"stdio"},
			"environmentVariables":[{"name":"WEATHER_KEY","description":"Your key.","isRequired":true,"isSecret":true},{"name":"UNIT","choices":["C","F"]}]}]}`}, nil)
	for _, columns := range screenWidths {
		p, program := newScreenUser(t)
		p.writeFile(p.userFile(), `{"mcpServers": {"notes": {"url": "`+resource.URL+`"}}}`)
		for name, script := range map[string]string{"systemctl": fakeSystemctl, "xdg-open": "#!/bin/sh\n"} {
			path := filepath.Join(p.home, "bin", name)
			p.writeFile(path, script)
			if err := os.Chmod(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		show := func(name string, words []string, use func(*pty)) {
			t.Helper()
			cmd := p.newCommand(words...)
			cmd.Env = append(cmd.Env, "PATH="+filepath.Join(p.home, "bin")+":"+os.Getenv("PATH"), "DISPLAY=:99")
			terminal := startOnTerminal(t, cmd, columns, 24)
			if use != nil {
				use(terminal)
			}
			terminal.expectExit(0)
			<-terminal.ended
			compareScreen(t, name, columns, p.screenRows(terminal, program, columns))
		}
		show("search", []string{"search", "weather", "--registry", registry}, nil)
		show("add", []string{"add", "io.github.acme/weather", "--registry", registry}, func(terminal *pty) {
			terminal.expect("environment variable WEATHER_KEY): ")
			terminal.typeText("hidden\n")
			terminal.expect("Add it as weather?")
			terminal.typeText("y\n")
		})
		show("login", []string{"login", "notes", "--no-browser"}, func(terminal *pty) {
			terminal.expect("HOST")
			page := loginPage.FindString(terminal.output())
			to, err := as.Approve(t.Context(), page)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.Get(to.String())
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		})
		show("logout", []string{"logout", "notes"}, nil)
		show("service-install", []string{"service", "install", "--", "--http", "0"}, nil)
		show("console-print", []string{"console", "--print"}, nil)
		show("console", []string{"console"}, nil)
		show("service-remove", []string{"service", "remove"}, nil)
	}
}
