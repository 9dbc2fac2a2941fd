package console_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/console"
)

// forbidden is code that could make markup or scripts of text, or reach for elsewhere. A brace
// before import( is a type in a comment.
var forbidden = regexp.MustCompile(`(?i)innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\("style|\bon\w+="|style="|srcdoc|javascript:|[^{]\bimport\(|document\.cookie|https?://[a-z]`)

var imports = regexp.MustCompile(`from "\./([\w.]+)"`)

// maxScripts limits the size of all scripts, in bytes; see docs/decisions/0022-console.md.
const maxScripts = 190 << 10

// The files of the console make no markup of text, load nothing from elsewhere, and are all used.
func TestFiles(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("web/*")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%q, %v", paths, err)
	}
	used, size := map[string]bool{"app.js": true, "console.css": true, "icon.svg": true, "index.html": true}, 0
	texts := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		texts[name] = string(text)
		if strings.HasSuffix(name, ".js") {
			size += len(text)
		}
		for _, found := range forbidden.FindAllString(strings.ReplaceAll(string(text), "http://www.w3.org/2000/svg", ""), -1) {
			t.Errorf("%s has %s", name, found)
		}
		for _, m := range imports.FindAllStringSubmatch(string(text), -1) {
			used[m[1]] = true
		}
	}
	for name := range texts {
		if !used[name] {
			t.Errorf("no module imports %s", name)
		}
	}
	for name := range used {
		if texts[name] == "" {
			t.Errorf("%s does not exist", name)
		}
	}
	if size > maxScripts {
		t.Errorf("the scripts have %d bytes, want at most %d", size, maxScripts)
	}
}

// The page names its files by their content, so that they can be kept for ever, and they are
// packed.
func TestFilesAreServed(t *testing.T) {
	t.Parallel()
	p := serveConsole(t, console.Options{})
	_, page := p.send("GET", "/console/any/path", "")
	path := regexp.MustCompile(`/console/~\w+/app\.js`).FindString(page)
	resp, text := p.send("GET", path, "")
	if resp.StatusCode != http.StatusOK || !strings.Contains(resp.Header.Get("Cache-Control"), "immutable") || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/javascript") || !strings.Contains(text, "import") {
		t.Errorf("%q: %d %v", path, resp.StatusCode, resp.Header)
	}
	if resp, packed := p.send("GET", path, "", "Accept-Encoding", "gzip"); resp.Header.Get("Content-Encoding") != "gzip" || len(packed) >= len(text) {
		t.Errorf("%v, %d bytes", resp.Header, len(packed))
	}
	for _, other := range []string{"/console/~000000000000/app.js", strings.Replace(path, "app.js", "none.js", 1), strings.Replace(path, "app.js", "index.html", 1)} {
		if resp, _ := p.send("GET", other, ""); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", other, resp.StatusCode)
		}
	}
}
