//go:build linux && budgets

package browser

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

var (
	budgetsFile = flag.String("budgets", "", "a `file` to write the table to, between its two marks")
	loadTime    = flag.Duration("load", time.Minute, "how `long` 5,000 messages a second pass")
)

const (
	firstMark = "<!-- what follows is written by the budgets of the console -->"
	lastMark  = "<!-- the end of the budgets of the console -->"
)

// budget is a row of the table: what was measured, and the most that it should be.
type budget struct {
	what           string
	measured, most float64
	unit           string
}

func (b budget) row() string {
	holds := "yes"
	if b.measured > b.most {
		holds = "**no**"
	}
	return fmt.Sprintf("| %s | %s | ≤ %s | %s |", b.what, b.value(b.measured), b.value(b.most), holds)
}

func (b budget) value(v float64) string {
	digits := 0
	if v < 10 && v != math.Trunc(v) {
		digits = 1
	}
	return strings.TrimSpace(fmt.Sprintf("%.*f %s", digits, v, b.unit))
}

// TestBudgets measures the console, and writes a table if -budgets names a file. It takes processor
// time from the browser's own metrics. Only a measurement that fails is a failure: whether a time
// holds depends on the machine.
func TestBudgets(t *testing.T) {
	all := measureFiles(t)
	u := newUser(t)
	u.configureServers(map[string]json.RawMessage{"everything": json.RawMessage(`"everything"`)})
	u.start()
	p := u.openConsole()
	p.state("everything", "ready")
	all = append(all, measurePaint(p, u)...)
	all = append(all, measureLoad(t, p, u)...)
	var table strings.Builder
	fmt.Fprintf(&table, "Measured on %s: %s/%s, %d cores, Chromium. Processor time is the page's own, from its metrics.\n\n| what | measured | budget | holds |\n|---|---|---|---|\n",
		time.Now().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	for _, b := range all {
		table.WriteString(b.row() + "\n")
	}
	t.Log("\n" + table.String())
	if *budgetsFile != "" {
		replaceTable(t, table.String())
	}
}

// measureFiles returns the sizes of what the browser loads.
func measureFiles(t *testing.T) []budget {
	scripts, styles := 0, 0
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	files, err := filepath.Glob("../internal/console/web/*.*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		switch filepath.Ext(file) {
		case ".js":
			scripts += len(text)
			zip.Write(text)
		case ".css":
			styles += len(text)
		}
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return []budget{{"JavaScript, source", float64(scripts) / 1024, 130, "KB"}, {"JavaScript, compressed", float64(zipped.Len()) / 1024, 40, "KB"}, {"CSS, source", float64(styles) / 1024, 25, "KB"}}
}

// measurePaint loads a screen some times, and leaves the page alone for some seconds.
func measurePaint(p *tab, u *user) []budget {
	var paints []float64
	requests := 0.0
	for range 7 {
		p.do(chromedp.Navigate(u.url + "/console/servers"))
		p.state("everything", "ready")
		p.until(`performance.getEntriesByName("first-contentful-paint").length === 1`)
		paints = append(paints, eval[float64](p, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
		requests = eval[float64](p, `performance.getEntriesByType("resource").length + 1`)
	}
	slices.Sort(paints)
	time.Sleep(2 * time.Second) // the last requests of the load
	eval[chromedp.Void](p, `performance.clearResourceTimings()`)
	time.Sleep(10 * time.Second)
	idle := eval[float64](p, `performance.getEntriesByType("resource").length`)
	return []budget{{"requests until the first screen is complete", requests, 25, ""}, {"first paint, median of 7", paints[len(paints)/2], 150, "ms"}, {"requests of an idle page in 10 s", idle, 0, ""}}
}

// measureLoad measures the list of messages while 5,000 messages a second pass, and then its full
// redraw and its memory.
func measureLoad(t *testing.T, p *tab, u *user) []budget {
	p.do(chromedp.Navigate(u.url + "/console/wire?rows=frames"))
	p.until(`!!document.querySelector(".bar .number")`)
	eval[chromedp.Void](p, `window.longest = 0; new PerformanceObserver(l => l.getEntries().forEach(e => { window.longest = Math.max(window.longest, e.duration); })).observe({type: "longtask"})`)
	metrics(p) // enables them
	before, start := metrics(p), time.Now()
	calls := makeLoad(t, u, *loadTime)
	took := time.Since(start)
	busy := (metrics(p)["ThreadTime"] - before["ThreadTime"]) / took.Seconds() * 100
	rate := float64(4*calls) / took.Seconds()
	longest := eval[float64](p, "window.longest")
	p.until(`Number(document.querySelector(".bar .number").textContent.replace(/\D/g, "").slice(0, 9)) > 0`)
	rows := eval[float64](p, `Number(/^[\d,]+/.exec(document.querySelector(".bar .number").textContent)[0].replaceAll(",", ""))`)

	const redraws = 100
	before = metrics(p)
	eval[chromedp.Void](p, fmt.Sprintf(`(async () => { const box = [...document.querySelectorAll("main *")].find(e => e.scrollHeight > 50000 && e.clientHeight > 100 && getComputedStyle(e).overflowY !== "visible");
		for (let i = 0; i < %d; i++) { box.scrollTop = (i * 7919 * 22) %% (box.scrollHeight - box.clientHeight); await new Promise(requestAnimationFrame); } })()`, redraws))
	redraw := (metrics(p)["ThreadTime"] - before["ThreadTime"]) * 1000 / redraws
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	if _, err := chromedp.Call(ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	heap := metrics(p)["JSHeapUsedSize"] / (1 << 20)
	t.Logf("%d calls, %.0f messages a second, %.0f rows in the page", calls, rate, rows)
	return []budget{
		{fmt.Sprintf("processor time of the page while %.0f messages a second pass for %v, of a core", math.Round(rate/100)*100, took.Round(time.Second)), busy, 25, "%"},
		{"longest task meanwhile", longest, 50, "ms"},
		{"full redraw of the list, processor time", redraw, 4, "ms"},
		{fmt.Sprintf("heap with %.0f rows", rows), heap, 40, "MB"},
	}
}

// makeLoad calls a tool through the gateway, 1,250 times a second: each call has two messages on
// either side of dowel. It returns the number of calls.
func makeLoad(t *testing.T, u *user, limit time.Duration) int64 {
	c := u.dial(&client.Options{})
	const perSecond, workers = 1250, 8
	var calls atomic.Int64
	var running sync.WaitGroup
	begin := time.Now()
	for range workers {
		running.Go(func() {
			for time.Since(begin) < limit {
				n := calls.Add(1)
				if early := time.Duration(n)*time.Second/perSecond - time.Since(begin); early > 0 {
					time.Sleep(early)
				}
				if _, err := c.CallTool(t.Context(), mcp.CallToolParams{Name: "everything__echo", Arguments: json.RawMessage(`{"message":"load"}`)}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	return calls.Load()
}

// metrics returns the browser's metrics of the page.
func metrics(p *tab) map[string]float64 {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	_, err := chromedp.Call(ctx, performance.Enable, performance.EnableParams{})
	if err != nil {
		p.t.Fatal(err)
	}
	result, err := chromedp.Call(ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		p.t.Fatal(err)
	}
	all := map[string]float64{}
	for _, m := range result.Metrics {
		all[m.Name] = m.Value
	}
	return all
}

// replaceTable writes the table between the marks of the file.
func replaceTable(t *testing.T, table string) {
	text, err := os.ReadFile(*budgetsFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), firstMark)
	_, after, found := strings.Cut(rest, lastMark)
	if !ok || !found {
		t.Fatalf("%s has no marks %q and %q", *budgetsFile, firstMark, lastMark)
	}
	if err := os.WriteFile(*budgetsFile, []byte(before+firstMark+"\n\n"+table+"\n"+lastMark+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
