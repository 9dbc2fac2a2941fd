//go:build linux

package browser

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// A change that comes between the press and the release of a button is drawn after the click.
func TestChangeWhilePressed(t *testing.T) {
	u := newUser(t)
	servers := map[string]json.RawMessage{"everything": json.RawMessage(`"everything"`)}
	u.configureServers(servers)
	u.start()
	p := u.openConsole()
	p.state("everything", "ready")
	const name = `[...document.querySelectorAll(".server a.name")].find(e => e.textContent === "everything")`
	at := eval[[]float64](p, "(e => { const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })("+name+")")
	p.mouse(input.DispatchMouseEventTypeMousePressed, at)
	servers["store"] = json.RawMessage(`"kv"`)
	u.configureServers(servers)
	p.until(`document.querySelector("#rail [data-screen=servers] b").textContent === "2"`)
	p.mouse(input.DispatchMouseEventTypeMouseReleased, at)
	p.until(`location.pathname.endsWith("/servers/everything")`)
	p.state("store", "ready")
	p.checkQuiet()
}

// mouse presses or releases the left button of the mouse.
func (p *tab) mouse(kind input.DispatchMouseEventType, at []float64) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	_, err := chromedp.Call(ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at[0], Y: at[1], Button: input.MouseButtonLeft, ClickCount: 1})
	if err != nil {
		p.t.Fatal(err)
	}
}
