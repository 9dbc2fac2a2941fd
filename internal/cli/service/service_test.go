package service

import (
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hardSpec has every character that the files must quote.
var hardSpec = spec{
	program: "/opt/my tools/dowel", args: []string{"up", "--host=a%b", `--origin=x"y\z$HOME<&>`}, env: []string{"XDG_STATE_HOME=/s p/$x%"},
	folder: "/home/me", log: "/home/me/state/service.log",
}

func TestSystemdUnit(t *testing.T) {
	text := systemd{}.formatFile(hardSpec)
	for _, want := range []string{
		"\nExecStart=\"/opt/my tools/dowel\" \"up\" \"--host=a%%b\" \"--origin=x\\\"y\\\\z$$HOME<&>\"\n",
		"\nEnvironment=\"XDG_STATE_HOME=/s p/$x%%\"\n", "\nWorkingDirectory=/home/me\n", "\nWantedBy=default.target\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the unit lacks %q:\n%s", want, text)
		}
	}
}

// systemd itself accepts the unit.
func TestSystemdVerifies(t *testing.T) {
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd is not installed")
	}
	s := hardSpec
	if s.program, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	s.folder = t.TempDir()
	path := filepath.Join(t.TempDir(), unitName)
	if err := os.WriteFile(path, []byte(systemd{}.formatFile(s)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--user", "verify", path)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}

func TestLaunchdPropertyList(t *testing.T) {
	text := launchd{}.formatFile(hardSpec)
	var list struct {
		Dict struct {
			Keys  []string `xml:"key"`
			Array struct {
				Strings []string `xml:"string"`
			} `xml:"array"`
		} `xml:"dict"`
	}
	if err := xml.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if got, want := strings.Join(list.Dict.Array.Strings, "\n"), hardSpec.program+"\n"+strings.Join(hardSpec.args, "\n"); got != want {
		t.Errorf("the arguments are %q, want %q", got, want)
	}
	if want := "Label ProgramArguments WorkingDirectory EnvironmentVariables RunAtLoad KeepAlive StandardOutPath StandardErrorPath"; strings.Join(list.Dict.Keys, " ") != want {
		t.Errorf("the keys are %v, want %s", list.Dict.Keys, want)
	}
}
