// Package transcripts holds golden transcripts: requests of clients of every revision, and the
// answers that a server must give, line by line. To add a case, add a file to testdata/<revision>,
// named after the method and its outcome. Check the lines against the specification when you write
// them; each run checks them against the revision's schema.
package transcripts

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// files returns all transcripts, as paths below testdata.
func files(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("testdata/*/*.txt")
	if err != nil || len(found) == 0 {
		t.Fatal("no transcripts", err)
	}
	for i, file := range found {
		found[i] = strings.TrimPrefix(filepath.ToSlash(file), "testdata/")
	}
	return found
}

func read(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimRight(string(text), "\n"), "\n")
}

var serverName = regexp.MustCompile(`(?m)^# server: (.*)$`)

func serverOf(t *testing.T, file string) played {
	t.Helper()
	name := "everything"
	if m := serverName.FindStringSubmatch(strings.Join(read(t, file), "\n")); m != nil {
		name = m[1]
	}
	p, ok := servers[name]
	if !ok {
		t.Fatalf("%s: there is no server %q", file, name)
	}
	return p
}

// playKnown is set where a transcript is played that is expected to fail.
const playKnown = "DOWEL_PLAY_KNOWN"

func TestTranscripts(t *testing.T) {
	for _, file := range files(t) {
		t.Run(file, func(t *testing.T) {
			if bug, ok := known[file]; ok && os.Getenv(playKnown) == "" {
				failsAsKnown(t, file, bug)
				return
			}
			p := serverOf(t, file)
			t.Context().Done() // makes its channel out here: it is closed outside of the player's bubble
			mcptest.Transcript(t, filepath.Join("testdata", filepath.FromSlash(file)), p.handler, p.options())
		})
	}
}

// failsAsKnown plays a transcript in a process of its own, since a test cannot expect itself to
// fail.
func failsAsKnown(t *testing.T, file string, bug knownBug) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestTranscripts$/^"+strings.ReplaceAll(regexp.QuoteMeta(file), "/", "$/^")+"$")
	cmd.Env = append(os.Environ(), playKnown+"=1")
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		t.Errorf("this passes now: take it out of known (%s)", bug.reason)
	case !bytes.Contains(out, []byte(bug.sign)):
		t.Errorf("this fails in another way than is known (%s):\n%s", bug.reason, out)
	}
}

// Every expected line must follow a line of the client, because the player compares only those.
func TestTranscriptsExpectSomething(t *testing.T) {
	for _, file := range files(t) {
		if !slices.Contains(mcp.Revisions(), mcp.Revision(path.Dir(file))) {
			t.Errorf("%s: %s is not a revision", file, path.Dir(file))
		}
		expected, compared := 0, false
		for i, line := range read(t, file) {
			switch {
			case strings.HasPrefix(line, "> "), strings.HasPrefix(line, "@wait "):
				compared = true
			case strings.HasPrefix(line, "< "):
				expected++
				if !compared {
					t.Errorf("%s:%d: an expected line follows nothing that the client does, and is not compared", file, i+1)
				}
			case line == "", strings.HasPrefix(line, "#"), strings.HasPrefix(line, "@lenient "):
				compared = false
			default:
				t.Errorf("%s:%d: what is this? %s", file, i+1, line)
			}
		}
		if expected == 0 {
			t.Errorf("%s: nothing is expected", file)
		}
	}
}

// Transcripts that are not found by the pattern would not be played.
func TestNoFileIsForgotten(t *testing.T) {
	played := files(t)
	err := filepath.WalkDir("testdata", func(name string, d os.DirEntry, err error) error {
		file := strings.TrimPrefix(filepath.ToSlash(name), "testdata/")
		if err == nil && !d.IsDir() && !slices.Contains(played, file) {
			t.Errorf("testdata/%s is not a transcript: transcripts are testdata/<revision>/<name>.txt", file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for file := range known {
		if !slices.Contains(played, file) {
			t.Errorf("known names %s, which is not there", file)
		}
	}
}
