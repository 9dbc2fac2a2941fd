//go:build linux

package browser

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/dowel-mcp/dowel/internal/polltest"
)

// startExample starts an example that prints the address of its gateway and a link to its console.
// newLink makes it print another link.
func startExample(t *testing.T, name string) (gateway, link string, newLink func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	build := exec.Command("go", "build", "-o", path, "./examples/"+name)
	build.Dir = ".."
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	program := exec.Command(path, "-http", "127.0.0.1:0")
	in, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	hangs := time.AfterFunc(2*polltest.Limit, func() { _ = program.Process.Kill() })
	t.Cleanup(func() {
		hangs.Stop()
		_ = program.Process.Signal(os.Interrupt)
		if err := program.Wait(); err != nil {
			t.Errorf("the example after an interrupt: %v", err)
		}
	})
	lines := bufio.NewScanner(out)
	read := func() string {
		if !lines.Scan() {
			t.Fatalf("the example prints no more: %v", lines.Err())
		}
		return lines.Text()
	}
	gateway = read()
	return gateway, read(), func() string {
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Fatal(err)
		}
		return read()
	}
}

// The console of a library user's own program shows its hub, without the screens and advice that
// need the program dowel, by mouse and by keyboard.
func TestLibraryConsole(t *testing.T) {
	gateway, link, newLink := startExample(t, "onegate")
	u := newUser(t)
	p := newTab(t, strings.TrimSuffix(gateway, "/mcp"))
	p.show(looks[0])
	p.do(chromedp.Navigate(link))
	p.state("clock", "ready")
	p.state("calculator", "ready")
	if rail := eval[string](p, `[...document.querySelectorAll("#rail a")].map(a => a.dataset.screen).join(" ")`); strings.Contains(rail, "config") || !strings.Contains(rail, "wire") {
		t.Errorf("the screens are %s", rail)
	}
	if text := eval[string](p, `document.getElementById("main").innerText`); strings.Contains(text, "Disable") || strings.Contains(text, "dowel ") {
		t.Errorf("the page offers something that needs dowel:\n%s", text)
	}
	p.checkAccessibility("library servers", looks[0])
	p.click("button", "Restart")
	p.sees("clock restarts")
	p.state("clock", "ready")
	u.run(false, "call", "calculator__add", "a=2", "b=3", "--url", gateway)
	p.press("gw")
	p.sees("calculator__add")
	p.click(".row", "calculator__add")
	p.sees("Copy as")
	if text := eval[string](p, `document.getElementById("inspector").innerText`); strings.Contains(text, "curl") || strings.Contains(text, "dowel call") || !strings.Contains(text, "Go test") {
		t.Errorf("the call can be copied in a form that needs dowel:\n%s", text)
	}
	p.press("gt")
	p.until(`location.pathname.endsWith("/tools")`)
	p.click("a", "add")
	p.fill("/a", "2")
	p.fill("/b", "40")
	p.press(kb.Escape)
	p.press("r")
	p.sees("42")
	p.press("gc")
	p.until(`location.pathname.endsWith("/servers")`)
	p.checkQuiet()
	other := newTab(t, strings.TrimSuffix(gateway, "/mcp"))
	other.do(chromedp.Navigate(link))
	other.sees("used already")
	other.sees("Open it with a link of the program")
	other.do(chromedp.Navigate("about:blank"), chromedp.Navigate(newLink()))
	other.state("clock", "ready")
}
