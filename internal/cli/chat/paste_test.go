package chat

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A pasted path of an image becomes a mention, however the terminal has quoted it. Other texts
// stay.
func TestMentionImage(t *testing.T) {
	folder := t.TempDir()
	image := "\x89PNG\r\n\x1a\n" + strings.Repeat("x", 20)
	for name, content := range map[string]string{"a.png": image, "two words (1).PNG": image, "text.png": "no image", "a.txt": image, "empty.png": ""} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, "folder.png"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(folder, name) }
	two := `@"` + path("two words (1).PNG") + `"`
	tests := map[string]string{
		path("a.png"): "@" + path("a.png"), " " + path("a.png") + "\n": "@" + path("a.png"), "'" + path("a.png") + "'": "@" + path("a.png"),
		path("two words (1).PNG"): two, `"` + path("two words (1).PNG") + `"`: two,
		path("text.png"): "", path("a.txt"): "", path("empty.png"): "", path("none.png"): "", path("folder.png"): "",
		"look at " + path("a.png"): "", "": "", path("a.png") + "\n" + path("a.png"): "",
	}
	if runtime.GOOS != "windows" {
		tests[strings.NewReplacer(" ", `\ `, "(", `\(`, ")", `\)`).Replace(path("two words (1).PNG"))] = two
		tests["file://"+strings.ReplaceAll(path("two words (1).PNG"), " ", "%20")] = two
	}
	for pasted, want := range tests {
		if got, ok := mentionImage(pasted); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %t, want %q", pasted, got, ok, want)
		}
	}
}
