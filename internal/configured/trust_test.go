package configured_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/config"
)

// A changed env file or script in the project needs new trust, also while the files are watched. A
// server that is trusted with its folder needs none.
func TestTrustOfFiles(t *testing.T) {
	w := newFixture(t)
	env, script := filepath.Join(w.project, ".env"), filepath.Join(w.project, "server.js")
	w.write(env, "A=1")
	w.write(script, "one")
	w.projectFile(`{"mcpServers": {
		"env": {` + nothing + `, "envFile": ".env"}, "code": {` + nothing + `, "args": ["server.js"]}, "wide": {` + nothing + `, "envFile": ".env", "args": ["server.js"]}}}`)
	w.source.Load("begin")
	w.followChanges()
	w.expect("env needs trust", "code needs trust", "wide needs trust")
	w.trust(w.source, "env", false)
	w.trust(w.source, "code", false)
	w.trust(w.source, "wide", true)
	w.expect("env started", "code started", "wide started")
	w.write(env, "LD_PRELOAD=/evil.so")
	w.expect("env needs trust", "code started", "wide started")
	if why := w.reason("env"); !strings.Contains(why, "(~ file .env has other content): allow it again with dowel trust env") || strings.Contains(why, "evil") {
		t.Error(why)
	}
	w.write(script, "two")
	w.expect("env needs trust", "code needs trust", "wide started")
	w.write(env, "A=1")
	w.expect("env started", "code needs trust", "wide started")
	if err := os.Remove(script); err != nil {
		t.Fatal(err)
	}
	w.expect("env started", "code started", "wide started") // a missing file cannot run
	w.write(script, "three")
	w.expect("env started", "code needs trust", "wide started")
}

// Trust from an older dowel stays valid. The first load records the values and files as they are,
// and says so; changes after that need new trust.
func TestOldTrust(t *testing.T) {
	w := newFixture(t)
	var log bytes.Buffer
	w.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w.renewSource()
	env := filepath.Join(w.project, ".env")
	w.write(env, "A=1")
	file := filepath.Join(w.project, "dowel.json")
	entry := func(base string) string {
		return `{"mcpServers": {"p": {` + nothing + `, "envFile": ".env", "env": {"PYTHONUSERBASE": "` + base + `"}}}}`
	}
	w.projectFile(entry("/one"))
	old := config.Agreement{
		Hash:  "dd69314047cb334726a0277feb0dac0bfdbb7760cf52da1c4c9d323d0c2a3626",
		Facts: []string{"kind stdio", "command no-such-program-anywhere", "envFile .env", "env PYTHONUSERBASE"},
	}
	if err := w.options.Choices.Trust(file, "p", old); err != nil {
		t.Fatal(err)
	}
	w.source.Load("begin")
	w.expect("p started")
	if text := log.String(); strings.Count(text, "trust now covers") != 1 {
		t.Errorf("the log is %q", text)
	}
	w.source.Load("again")
	if text := log.String(); strings.Count(text, "trust now covers") != 1 {
		t.Errorf("the notice comes again: %q", text)
	}
	w.projectFile(entry("/two"))
	w.source.Load("the file changed")
	w.expect("p needs trust")
	w.projectFile(entry("/one"))
	w.write(env, "A=2")
	w.source.Load("the file changed")
	w.expect("p needs trust")
}
