package savedcalls_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/savedcalls"
)

// A change keeps comments, other calls and the digits of numbers.
func TestWrite(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, savedcalls.FileName)
	if err := os.WriteFile(path, []byte("{\n  // of the team\n  \"calls\": {\n    \"old\": {\"tool\": \"a.b.c\"} // keep\n  }\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := savedcalls.Call{Name: "big", Server: "s", Tool: "t", Arguments: json.RawMessage(`{"id": 12345678901234567890, "list": [{"a": null}]}`)}
	if err := savedcalls.Write(folder, c); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	for _, kept := range []string{"// of the team", "// keep", "12345678901234567890"} {
		if !strings.Contains(string(text), kept) {
			t.Errorf("%q is missing in\n%s", kept, text)
		}
	}
	all, err := savedcalls.Read(folder)
	if err != nil || len(all) != 2 || all[1].Server != "a" || all[1].Tool != "b.c" || string(all[1].Arguments) != "{}" || !strings.Contains(string(all[0].Arguments), "12345678901234567890") {
		t.Errorf("%v: %s", err, all)
	}
	if err := savedcalls.Remove(folder, "old"); err != nil {
		t.Error(err)
	}
	if _, err := savedcalls.Find(folder, "old"); err == nil || !strings.Contains(err.Error(), "want big") {
		t.Errorf("a removed call: %v", err)
	}
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if all, err := savedcalls.Read(folder); err != nil || len(all) != 0 {
		t.Errorf("without a file: %v %v", all, err)
	}
	if _, err := savedcalls.Find(folder, "x"); err == nil {
		t.Error("a call is found in no file")
	}
	for _, text := range []string{"{", "[]", `{"calls": []}`, `{"calls": {"a": 1}}`, `{"calls": {"a": {"tool": "x"}}}`, strings.Repeat(" ", 2<<20)} {
		if err := os.WriteFile(filepath.Join(folder, savedcalls.FileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := savedcalls.Read(folder); err == nil {
			t.Errorf("%.40q is read", text)
		}
	}
	for _, wrong := range []savedcalls.Call{{Name: "", Server: "s", Tool: "t"}, {Name: "a\nb", Server: "s", Tool: "t", Arguments: []byte("{}")}, {Name: "a", Server: "s.t", Tool: "t", Arguments: []byte("{}")}, {Name: "a", Server: "s", Tool: "t", Arguments: []byte("[]")}} {
		if err := savedcalls.Write(t.TempDir(), wrong); err == nil {
			t.Errorf("%+v is saved", wrong)
		}
	}
}
