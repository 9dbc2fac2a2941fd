package files

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readCase reads a file of parts, each after a line "-- name --". In a part, \r and \ufeff are
// escapes, \\ is a backslash, and a backslash at the end of the last line means that it lacks a
// line end.
func readCase(t *testing.T, file string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := string(raw)
	parts := map[string]string{}
	heads := regexp.MustCompile(`(?m)^-- (\w+) --\n`).FindAllStringSubmatchIndex(all, -1)
	for i, head := range heads {
		end := len(all)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		body := all[head[1]:end]
		body = strings.NewReplacer(`\\`, `\`, `\r`, "\r", `\ufeff`, "\ufeff", "\\\n", "").Replace(body)
		parts[all[head[2]:head[3]]] = body
	}
	return parts
}

// TestPatches applies the diffs of testdata/patch, a case a file. Where one can be applied, the
// diff that is returned applies too, with the same outcome.
func TestPatches(t *testing.T) {
	cases, err := filepath.Glob("testdata/patch/*.txt")
	if err != nil || len(cases) < 30 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			c := readCase(t, file)
			doc := parseDocument([]byte(c["before"]))
			changed, _, err := doc.applyPatch(c["diff"])
			if want, fails := c["error"]; fails {
				if err == nil || err.Error()+"\n" != want {
					t.Errorf("got %v\nwant %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(doc.encodeText(changed)); got != c["after"] {
				t.Errorf("got  %q\nwant %q", got, c["after"])
			}
			again, _, err := doc.applyPatch(diffOf(doc.text, changed).writeUnified("x"))
			if err != nil || again != changed {
				t.Errorf("its own diff: %v, %q", err, again)
			}
		})
	}
}
