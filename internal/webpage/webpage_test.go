package webpage

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/polltest"
)

func TestBrowserCommand(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		system string
		env    string
		want   string // "" wants an error
	}{
		{"linux", "DISPLAY=:0", "/bin/xdg-open"},
		{"linux", "WAYLAND_DISPLAY=wayland-0", "/bin/xdg-open"},
		{"linux", "WSL_DISTRO_NAME=Debian", "/bin/rundll32.exe url.dll,FileProtocolHandler"},
		{"linux", "", ""},
		{"linux", "BROWSER=w3m -o x=y %s:firefox", "w3m -o x=y"},
		{"linux", "BROWSER=none", ""},
		{"darwin", "BROWSER=none", ""},
		{"darwin", "", "open"},
		{"windows", "BROWSER=C:\\x.exe", "rundll32 url.dll,FileProtocolHandler"},
	} {
		name, value, _ := strings.Cut(tt.env, "=")
		getenv := func(asked string) string { return map[string]string{name: value}[asked] }
		args, err := browserCommand(tt.system, getenv, func(file string) (string, error) { return "/bin/" + file, nil })
		if strings.Join(args, " ") != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%s with %s: %q, %v, want %q", tt.system, tt.env, args, err, tt.want)
		}
	}
	missing := func(string) (string, error) { return "", errors.New("not found") }
	if _, err := browserCommand("linux", func(string) string { return ":0" }, missing); err == nil {
		// The environment function returns ":0" for BROWSER too: the first part is empty.
		t.Error("no error without a program that opens pages")
	}
}

// The page of an attacker reaches the browser as one argument, whatever characters it has.
func TestBrowserGetsPageAsOneArgument(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // the browser of this test is a script of a Unix shell
	}
	folder := t.TempDir()
	script, out := filepath.Join(folder, "browser"), filepath.Join(folder, "out")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nfor a in \"$@\"; do printf '%s\\n' \"$a\"; done >"+out+".new && mv "+out+".new "+out+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BROWSER", script+" --new-tab")
	page := "https://as.example/authorize?a=$(touch${IFS}" + folder + "/pwned)&b=`id`;|&c='%22&state=x"
	want := "https://as.example/authorize?a=%24%28touch%24%7BIFS%7D" + folder + "/pwned%29&b=%60id%60%3B%7C&c=%27%22&state=x"
	if err := Open(page); err != nil {
		t.Fatal(err)
	}
	var text []byte
	polltest.Until(t, "the browser has run", func() bool {
		var err error
		text, err = os.ReadFile(out)
		return err == nil
	})
	if got := strings.Split(strings.TrimSpace(string(text)), "\n"); !slices.Equal(got, []string{"--new-tab", want}) {
		t.Errorf("the browser got %q", got)
	}
	if _, err := os.Stat(filepath.Join(folder, "pwned")); err == nil {
		t.Error("a shell has read the page's address")
	}
	for _, bad := range []string{"javascript:alert(1)", "file:///etc/passwd", "--help", "https://as.example/ --x", "vbscript:x", "",
		"https://as.example$(id)/", "https://as.example;id/", "https://a'b/", "https://a&b/"} {
		if err := Open(bad); err == nil {
			t.Errorf("%q was opened", bad)
		}
	}
}
