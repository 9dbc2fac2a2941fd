package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeFiles writes files into a new folder, which it returns.
func writeFiles(t *testing.T, contents map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for path, content := range contents {
		full := filepath.Join(folder, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestCollectServer(t *testing.T) {
	folder := writeFiles(t, map[string]string{
		"server-ping-2026-11-21T06-48-10-468Z/checks.json":              `[{"id":"p","name":"n","status":"FAILURE","errorMessage":"m"}]`,
		"server-server-initialize-2026-11-21T06-48-10-468Z/checks.json": `[]`,
		"server-broke-off-2026-11-21T06-48-10-468Z/other.txt":           "",
		"suite.log": "x",
	})
	all, err := collectOutcomes(folder, "server")
	if err != nil || len(all) != 2 || all["server-initialize"] == nil {
		t.Fatalf("%v, %v", all, err)
	}
	if got := all["ping"].checks; len(got) != 1 || got[0] != (check{ID: "p", Name: "n", Status: "FAILURE", Message: "m"}) {
		t.Errorf("%+v", got)
	}
}

func TestCollectClient(t *testing.T) {
	const at = "-2026-11-21T06-49-40-655Z/"
	folder := writeFiles(t, map[string]string{
		"auth/well" + at + "checks.json": `[]`, "auth/well" + at + "stdout.txt": "x\ndone\n", "auth/well" + at + "stderr.txt": "a warning\n",
		"failed" + at + "checks.json": `[]`, "failed" + at + "stdout.txt": "", "failed" + at + "stderr.txt": "a warning\nlost\n",
		"panicked" + at + "checks.json": `[]`, "panicked" + at + "stdout.txt": "", "panicked" + at + "stderr.txt": "w\npanic: oh\n\ngoroutine 1\n",
		"hung" + at + "checks.json": `[]`, "hung" + at + "stdout.txt": "not done", "hung" + at + "stderr.txt": "",
		"silent" + at + "checks.json": `[]`,
	})
	all, err := collectOutcomes(folder, "client")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"auth/well": "", "failed": "lost", "panicked": "panic: oh\n\ngoroutine 1",
		"hung": "it did not finish, and wrote nothing to stderr", "silent": "it did not finish, and wrote nothing to stderr",
	} {
		if all[name] == nil || all[name].failure != want {
			t.Errorf("%s: %+v, want %q", name, all[name], want)
		}
	}
}

func TestCollectRefuses(t *testing.T) {
	for want, contents := range map[string]map[string]string{
		"unexpected end":     {"a-2026-11-21T06-49-40-655Z/checks.json": "["},
		"cannot unmarshal":   {"a-2026-11-21T06-49-40-655Z/checks.json": "{}"},
		"checks.json: a ran": {"a-2026-11-21T06-49-40-655Z/checks.json": "[]", "a-2026-11-21T06-49-41-655Z/checks.json": "[]"},
	} {
		if all, err := collectOutcomes(writeFiles(t, contents), "client"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v, want %q", all, err, want)
		}
	}
}
