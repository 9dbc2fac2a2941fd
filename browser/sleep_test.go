//go:build linux

package browser

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// A page that cannot run for some seconds delays no other client. Afterwards it has every message
// or shows the gap. A dowel that was stopped continues, too.
func TestSleep(t *testing.T) {
	u := newUser(t)
	u.configureServers(map[string]json.RawMessage{"everything": json.RawMessage(`"everything"`)})
	u.start()
	p := u.openConsole()
	p.state("everything", "ready")
	c := u.dial(&client.Options{})
	call := func(message string) {
		t.Helper()
		arguments, _ := json.Marshal(map[string]string{"message": message})
		if _, err := c.CallTool(t.Context(), mcp.CallToolParams{Name: "everything__echo", Arguments: arguments}); err != nil {
			t.Fatal(err)
		}
	}
	p.do(chromedp.Navigate(u.url + "/console/wire?rows=frames"))
	call("before the sleep")
	p.sees("before the sleep")
	eval[chromedp.Void](p, `setTimeout(() => { for (const end = Date.now() + 8_000; Date.now() < end;); })`)
	calls := 2
	for begin := time.Now(); time.Since(begin) < 4*time.Second; calls++ {
		call(strings.Repeat("long ", 4000))
	}
	call("after the sleep")
	p.sees("after the sleep")
	p.until(fmt.Sprintf(`Number(document.querySelector(".bar .number").textContent.replace(/\D/g, "")) >= %d || !!document.querySelector(".row.gap")`, 4*calls))

	if err := u.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		call("while it was stopped")
	}()
	if err := u.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	<-done
	p.do(chromedp.Navigate(u.url + "/console/wire?rows=frames&q=stopped"))
	p.sees("while it was stopped")
	p.checkQuiet()
}
