//go:build linux

package browser

import (
	"context"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// The browser is shared by all tests. Each page has a browser context of its own, like a new
// profile.
var (
	browserOnce sync.Once
	browser     context.Context
	endBrowser  []context.CancelFunc
)

// startBrowser starts Chromium once.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	browserOnce.Do(func() {
		options := []chromedp.ExecAllocatorOption{chromedp.Headless, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true)}
		if os.Geteuid() == 0 {
			options = append(options, chromedp.NoSandbox)
		}
		allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, cancel := chromedp.NewContext(allocator)
		endBrowser = append(endBrowser, cancel, end)
		if err := chromedp.Do(ctx); err == nil {
			browser = ctx
		}
	})
	if browser == nil {
		t.Fatal("Chromium could not be started: run make browser-deps")
	}
	return browser
}

func stopBrowser() {
	for _, end := range endBrowser {
		end()
	}
}

// tab is a page in the browser. Its methods fail the test.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string // errors of the console and requests to elsewhere
	origin   string   // the only one that the page may reach
}

// limit bounds each step in a browser.
const limit = 60 * time.Second

// newTab opens an empty page in a profile of its own.
func newTab(t *testing.T, origin string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(startBrowser(t), chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx, origin: origin}
	if err := chromedp.Do(ctx); err != nil { // the end of this context closes the tab
		t.Fatal(err)
	}
	messages, requests := chromedp.Console(p.ctx), chromedp.Events(p.ctx, network.RequestWillBeSent)
	go p.watchConsole(messages)
	go p.watchRequests(requests)
	return p
}

func (p *tab) watchConsole(messages iter.Seq2[chromedp.ConsoleMessage, error]) {
	for message, err := range messages {
		if err != nil {
			return
		}
		p.note(fmt.Sprintf("console: %+v", message))
	}
}

func (p *tab) watchRequests(requests iter.Seq2[network.EventRequestWillBeSent, error]) {
	for e, err := range requests {
		if err != nil {
			return
		}
		url := strings.TrimPrefix(e.Request.URL, "blob:")
		if !strings.HasPrefix(url, p.origin) && !strings.HasPrefix(url, "data:") && url != "about:blank" { // data: pictures of the browser's own buttons
			p.note("request to " + url)
		}
	}
}

func (p *tab) note(problem string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, problem)
}

// checkOrigin fails the test if the page has reached for elsewhere.
func (p *tab) checkOrigin() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		if strings.HasPrefix(problem, "request") {
			p.t.Error(problem)
		}
	}
}

// checkQuiet fails the test if the page has written to its console, or has reached for elsewhere.
func (p *tab) checkQuiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		p.t.Error(problem)
	}
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// eval returns the value of an expression.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// until waits until an expression is true. The page may be replaced meanwhile.
func (p *tab) until(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for {
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("(async () => !!(await ("+expression+")))()", chromedp.EvalAwaitPromise))
		if err == nil && holds {
			return
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			p.t.Fatalf("it did not become true: %s: %v\n%s", expression, err, eval[string](p, "document.body.innerText.slice(0, 3000)"))
		}
	}
}

// sees waits until the page shows a text.
func (p *tab) sees(text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("document.body.textContent.includes(%q)", text))
}

// click clicks the first visible element with a selector and a text. It clicks again if the element
// has moved meanwhile, so that something else was hit.
func (p *tab) click(selector, text string) {
	p.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll(%q)].find(e => e.innerText.includes(%q) && e.checkVisibility())", selector, text)
	listen := fmt.Sprintf("window.wasHit = false; document.addEventListener('click', e => { window.wasHit = !!e.target.closest(%q)?.innerText.includes(%q) }, {capture: true, once: true})", selector, text)
	for end := time.Now().Add(limit); ; {
		p.until("!!" + find)
		at := eval[[]float64](p, "(e => { if (!e) return []; e.scrollIntoView({block: 'nearest'}); const r = e.getBoundingClientRect(); "+listen+"; return [r.x + r.width / 2, r.y + r.height / 2] })("+find+")")
		if len(at) == 2 {
			p.do(chromedp.MouseClickXY(at[0], at[1]))
			if p.wasHit() {
				return
			}
		}
		if time.Now().After(end) {
			p.t.Fatalf("no click hits %s with %q", selector, text)
		}
	}
}

// wasHit reports whether the last click has hit its element. A click that has led to another page
// has.
func (p *tab) wasHit() bool {
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	wasHit, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("window.wasHit !== false"))
	return err != nil || wasHit
}

// press types keys.
func (p *tab) press(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// look is how a page is shown.
type look struct {
	name          string
	width, height int64
	scheme        string // light or dark
	forced        bool   // colours
}

var looks = []look{
	{"wide-light", 1440, 900, "light", false}, {"wide-dark", 1440, 900, "dark", false},
	{"phone-light", 390, 844, "light", false}, {"phone-dark", 390, 844, "dark", false}, {"forced", 1440, 900, "dark", true},
}

// show changes how the page is shown.
func (p *tab) show(l look) {
	p.t.Helper()
	forced := "none"
	if l.forced {
		forced = "active"
	}
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: l.scheme}, {Name: "forced-colors", Value: forced}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.do(chromedp.EmulateViewport(l.width, l.height))
}

// capture writes a screenshot if DOWEL_SHOTS names a folder.
func (p *tab) capture(name string) {
	p.t.Helper()
	folder := os.Getenv("DOWEL_SHOTS")
	if folder == "" {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	result, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng})
	if err == nil {
		err = os.WriteFile(folder+"/"+name+".png", result.Data, 0o644)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}
