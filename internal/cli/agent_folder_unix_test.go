//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// A task that uses a dowel in another folder tells the user and the model so.
func TestRunTaskElsewhere(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	m := startModel(t, `{"turns": [{"text": "Done."}, {"text": "Done."}]}`)
	p.writeConfig(m)
	p.startDaemon()
	there := p.project

	if out := p.runDowel("run", "Do it."); out.code != exit.OK || strings.Contains(out.stderr, "not here") {
		t.Errorf("in the folder of the dowel that runs: %+v", out)
	}
	p.project = filepath.Join(t.TempDir(), "other")
	if err := os.Mkdir(p.project, 0o700); err != nil {
		t.Fatal(err)
	}
	p.writeFile(p.projectFile(), `{"mcpServers": {"theirs": `+p.builtInEntry("everything", "")+`}}`)
	out := p.runDowel("run", "Do it.")
	if out.code != exit.OK {
		t.Errorf("%+v", out)
	}
	checkText(t, out.stderr, []string{"that runs in " + there, "they work there, not here", "does not use the servers of " + p.projectFile()}, []string{"dowel.toml"})
	said := m.Requests()
	if first, last := string(said[0].Body), string(said[1].Body); strings.Contains(first, "work in the folder") || !strings.Contains(last, "work in the folder "+there) {
		t.Errorf("the model is told %s\nand elsewhere %s", first, last)
	}
}
