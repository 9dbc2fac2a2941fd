package state

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/definitions"
)

// TestDefinitionLog checks that logs of different servers are different files that only the user
// can read, and that a damaged file accepts nothing.
func TestDefinitionLog(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s, err := Open(filepath.Join(folder, "dowel", "state.json"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	check := func(log client.DefinitionLog, text string) (*client.DefinitionChange, error) {
		d := definitions.New(definitions.Tool, "env", json.RawMessage(text))
		r, err := definitions.Observe(log, []definitions.Definition{d}, true)
		return r.Check(d), err
	}
	mine, foreign, other := s.DefinitionLog("", "a"), s.DefinitionLog(filepath.Join(folder, "dowel.json"), "a"), s.DefinitionLog("", "b")
	for i, log := range []client.DefinitionLog{mine, foreign, other} {
		if change, err := check(log, `{"first":"`+strings.Repeat("x", i)+`"}`); change != nil || err != nil {
			t.Errorf("the first definition of %v: %+v, %v", log, change, err)
		}
	}
	change, err := check(mine, `{}`)
	if change == nil || err != nil {
		t.Fatalf("the change: %+v, %v", change, err)
	}
	if err := client.AcceptDefinitions(mine, *change); err != nil {
		t.Fatal(err)
	}
	if change, err := check(mine, `{}`); change != nil || err != nil {
		t.Errorf("the accepted change: %+v, %v", change, err)
	}
	path := string(mine.(definitionFile))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 && filepath.Separator == '/' {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(path, []byte(`{"definitions":{`), 0o600); err != nil {
		t.Fatal(err)
	}
	if change, err := check(mine, `{}`); change == nil || err != nil {
		t.Errorf("a damaged file: %+v, %v", change, err)
	}
	if change, err := check(definitionFile(folder), `{}`); change == nil || err == nil {
		t.Errorf("a file that cannot be read: %+v, %v", change, err)
	}
}
