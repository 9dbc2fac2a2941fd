//go:build linux && shots

package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/dowel-mcp/dowel/mcp"
)

// TestShots renews the pictures of docs/console.md in the folder DOWEL_SHOTS, with servers of npm
// and of dowel, and calls of clients of both eras. Run it with make console-shots.
func TestShots(t *testing.T) {
	ann := filepath.Join(os.TempDir(), "ann") // a short path for the pictures
	if err := os.Mkdir(ann, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(ann) })
	u := newUser(t)
	u.home, u.project = filepath.Join(ann, ".config"), filepath.Join(ann, "notes")
	for _, folder := range []string{u.home, u.project} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	npm := func(name string, words ...string) json.RawMessage {
		text, err := json.Marshal(map[string]any{"command": "npx", "args": append([]string{"-y", name}, words...)})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	u.write(filepath.Join(u.project, "TODO.md"), "# TODO\n\n- [ ] release notes\n- [ ] measure the gateway with 100,000 rows\n")
	u.configureServers(map[string]json.RawMessage{
		"everything": json.RawMessage(`"everything"`), "reference": npm("@modelcontextprotocol/server-everything"),
		"memory": npm("@modelcontextprotocol/server-memory"), "filesystem": npm("@modelcontextprotocol/server-filesystem", u.project),
		"github": json.RawMessage(entry(t, "github")), "tracker": json.RawMessage(entry(t, "shapes")), "jira": json.RawMessage(`{"command": "sh", "args": ["-c", "printf 'jira-mcp 2.1.0\\nError: JIRA_API_TOKEN is not set\\n' >&2; exit 1"]}`), "kv": json.RawMessage(`"kv"`),
	})
	u.write(filepath.Join(u.project, ".mcp.json"), `{"mcpServers": {"team-db": {"command": "npx", "args": ["-y", "@acme/db-mcp", "--url", "postgres://team@db/prod"]}}}`)
	u.run(false, "servers", "disable", "kv")
	u.start()
	p := u.openConsole()
	for _, name := range []string{"everything", "reference", "memory", "filesystem", "github", "tracker"} {
		p.state(name, "ready")
	}
	p.sees("JIRA_API_TOKEN")
	u.traffic()
	u.run(false, "call", "memory.create_entities", "--args", `{"entities": [{"name": "dowel", "entityType": "project", "observations": ["speaks every revision of MCP"]}]}`)
	u.run(false, "call", "memory.search_nodes", "query=dowel", "--revision", "2025-11-25")
	u.run(false, "call", "reference.get-sum", "a=19", "b=23")
	u.run(false, "call", "reference.trigger-long-running-operation", "duration=2", "steps=4")
	u.run(false, "call", "filesystem.read_text_file", "path="+filepath.Join(u.project, "TODO.md"))
	u.run(true, "call", "filesystem.read_text_file", "path=/etc/shadow")
	todo := filepath.Join(u.project, "TODO.md")
	u.chat(`{"turns": [
		{"text": "I look at the list and at what is remembered.", "calls": [{"name": "filesystem__read_text_file", "arguments": {"path": "`+todo+`"}}, {"name": "memory__search_nodes", "arguments": {"query": "dowel"}}], "usage": {"input": 6140, "output": 88}},
		{"text": "Two items are open:\n\n- the **release notes**\n- measuring the gateway with 100,000 rows\n\nThe memory has one entry: dowel speaks every revision of MCP. Shall I draft the notes?", "usage": {"input": 6480, "cached": 6016, "output": 57}}]}`,
		"What is left to do before the release?\n", "--server", "filesystem", "--server", "memory", "--approve", "all")
	answered := u.ask("claude-code", mcp.LatestRevision, asksName, "Which account shall the release notes name?", true)
	answered.answer <- &mcp.ElicitResult{Action: mcp.ElicitDecline}
	<-answered.result
	u.ask("cursor", mcp.Revision20251125, "everything__test_elicitation_sep1330_enums", "", true)
	u.ask("claude-code", mcp.LatestRevision, asksName, "How shall the release be named?", true)
	for _, screen := range []struct {
		name, path, phone, ready string
		then                     func()
	}{
		{"servers", "/console/servers/jira?tab=doctor", "/console/servers", "JIRA_API_TOKEN", func() {
			p.click("button", "Walk through")
			p.sees("Walk again")
		}},
		{"tools", "/console/tools/memory/tool/search_nodes", "", "Arguments", func() {
			p.fill("/query", "dowel")
			p.click(".run", "Run")
			p.until(`!!document.querySelector(".calls li") && !!document.querySelector(".result")`)
		}},
		{"wire", "/console/wire?q=method:tools/call", "/console/wire?q=method:tools/call", "delete_repository", func() {
			p.click(".row", "trigger-long")
			p.sees("Started")
			eval[chromedp.Void](p, "document.querySelector('.list').focus()")
			p.press(kb.ArrowRight)
			p.until("document.querySelector('.row.child')")
		}},
		{"asks", "/console/asks", "", "How shall the release be named", nil},
		{"chat", "/console/chat", "", "What is left to do", func() {
			p.click(".chat", "What is left to do")
			p.click("summary", "memory.search_nodes")
			p.sees("project")
			p.click("a", "request 2")
			p.sees("Exactly what the model got")
		}},
		{"config", "/console/config/filesystem", "/console/config", "filesystem", nil},
		{"audit", "/console/audit", "/console/audit", "delete_repository", func() {
			p.click(".row", "delete_repository")
			p.sees("Outcome")
		}},
	} {
		p.do(chromedp.Navigate(u.url + screen.path))
		p.sees(screen.ready)
		if screen.then != nil {
			screen.then()
		}
		for _, l := range looks[:4] {
			p.show(l)
			if screen.name == "chat" && l.width < 600 && eval[bool](p, `!document.getElementById("inspector").hidden`) {
				p.press(kb.Escape) // the request would cover the conversation
				p.until(`document.getElementById("inspector").hidden`)
			}
			if screen.phone != "" && l.width < 600 {
				p.do(chromedp.Navigate(u.url + screen.phone))
				p.until(`document.getElementById("main").textContent.length > 200`)
			}
			p.until("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))")
			p.until(`!document.getAnimations().some(a => a instanceof CSSTransition)`)
			p.shoot(screen.name + "-" + strings.Replace(l.name, "wide", "1440", 1))
		}
		p.show(looks[0])
	}
	p.checkQuiet()
}

// shoot stores a picture of the page with the colours that it needs most.
func (p *tab) shoot(name string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	result, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng})
	if err != nil {
		p.t.Fatal(err)
	}
	full, err := png.Decode(bytes.NewReader(result.Data))
	if err != nil {
		p.t.Fatal(err)
	}
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&small, reduceColors(full, 256)); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(os.Getenv("DOWEL_SHOTS"), name+".png"), small.Bytes(), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// isNear reports whether no channel of two colours differs by more than a distance.
func isNear(a, b color.RGBA, distance int) bool {
	far := func(x, y uint8) bool { return int(x)-int(y) > distance || int(y)-int(x) > distance }
	return !far(a.R, b.R) && !far(a.G, b.G) && !far(a.B, b.B)
}

// reduceColors returns a picture with n of its colours. It chooses the most frequent colours that
// differ clearly, then colours that differ less. Every other colour becomes the nearest chosen one.
func reduceColors(full image.Image, n int) image.Image {
	counts := map[color.RGBA]int{}
	bounds := full.Bounds()
	at := func(x, y int) color.RGBA {
		r, g, b, _ := full.At(x, y).RGBA()
		return color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 255}
	}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	all := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int { return counts[b] - counts[a] })
	var palette color.Palette
	for distance := 16; len(palette) < min(n, len(all)) && distance >= 0; distance -= 4 {
		for _, c := range all {
			if len(palette) < n && !slices.ContainsFunc(palette, func(known color.Color) bool { return isNear(c, known.(color.RGBA), distance) }) {
				palette = append(palette, c)
			}
		}
	}
	nearest := map[color.RGBA]uint8{}
	for _, c := range all {
		nearest[c] = uint8(palette.Index(c))
	}
	small := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			small.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	return small
}
