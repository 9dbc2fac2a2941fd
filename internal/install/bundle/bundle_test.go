package bundle

import (
	"archive/zip"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/install"
)

// file is an entry of a ZIP file that a test writes. A zero mode means 0644.
type file struct {
	name, text string
	mode       fs.FileMode
}

const manifest = `{"manifest_version":"0.3","name":"my weather","display_name":"Weather","version":"1.0.0","description":"Forecasts.","author":{"name":"Acme"},
	"server":{"type":"node","entry_point":"server/index.js","mcp_config":{"command":"node",
		"args":["${__dirname}/server/index.js","${user_config.dirs}","--unit=${user_config.unit}","${HOME}${/}x","${file:/etc/passwd}"],
		"env":{"KEY":"${user_config.key}","OPTIONAL":"${user_config.none}"},
		"platform_overrides":{"plan9":{"command":"x"}}}},
	"user_config":{"dirs":{"type":"directory","title":"Folders","multiple":true,"required":true,"default":["${HOME}/a","${HOME}/b"]},
		"unit":{"type":"string","default":"C"},"key":{"type":"string","sensitive":true,"required":true},"none":{"type":"string"},
		"days":{"type":"number","default":3,"min":1,"max":7}}}`

// writeBundle writes a ZIP file.
func writeBundle(t *testing.T, files ...file) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.mcpb")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(out)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		if f.mode == 0 {
			f.mode = 0o644
		}
		h.SetMode(f.mode)
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write([]byte(f.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInstall(t *testing.T) {
	t.Parallel()
	b, err := Open(writeBundle(t, file{name: "manifest.json", text: manifest}, file{name: "server/", mode: fs.ModeDir | 0o755}, file{name: "server/index.js", text: "code"},
		file{name: "bin/tool", text: "#!/bin/sh", mode: 0o4755}))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	root := filepath.Join(t.TempDir(), "bundles")
	folder, err := b.Install(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := b.Install(t.Context(), root); again != folder || err != nil {
		t.Errorf("a second install: %s, %v", again, err)
	}
	if want, err := b.Folder(root); folder != want || err != nil || !strings.HasPrefix(filepath.Base(folder), "my_weather") && !strings.HasPrefix(filepath.Base(folder), "my-weather") {
		t.Errorf("the folder is %s, %v", folder, err)
	}
	if text, err := os.ReadFile(filepath.Join(folder, "server", "index.js")); string(text) != "code" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if runtime.GOOS != "windows" {
		if info, err := os.Stat(filepath.Join(folder, "bin", "tool")); err != nil || info.Mode() != 0o700 {
			t.Errorf("the program has the mode %v, %v", info.Mode(), err)
		}
	}
	left, err := filepath.Glob(root + "/.unpacking-*")
	if len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	b, err := Open(writeBundle(t, file{name: "manifest.json", text: manifest}))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	p := b.Manifest.Plan("/bundles/${x}")
	v, missing, err := p.Fill(install.Values{"unit": {"F"}})
	if err != nil || len(missing) > 0 {
		t.Fatal(missing, err)
	}
	home, _ := os.UserHomeDir()
	s := p.Build(v)
	got := strings.Join(append([]string{s.Command, s.Dir}, s.Args...), "|")
	want := strings.Join([]string{"node", "/bundles/$${x}", "/bundles/$${x}/server/index.js", home + "/a", home + "/b", "--unit=F", home + string(filepath.Separator) + "x", "$${file:/etc/passwd}"}, "|")
	if got != want || s.Env["KEY"] != "${KEY}" || len(s.Env) != 1 {
		t.Errorf("%s, want\n%s\n%v", got, want, s.Env)
	}
	v, _, err = p.Fill(install.Values{"dirs": {"/c"}, "key": {"k"}, "none": {"n"}})
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Build(v); s.Args[1] != "/c" || s.Args[2] != "--unit=C" || s.Env["KEY"] != "k" || s.Env["OPTIONAL"] != "n" {
		t.Errorf("%+v", s)
	}
	for says, given := range map[string]install.Values{"want at most 7": {"days": {"8"}}, "want a number": {"days": {"x"}}, "did you mean unit": {"unti": {"C"}}, "has one value": {"unit": {"C", "F"}}} {
		if _, _, err := p.Fill(given); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, want %q", given, err, says)
		}
	}
}

// The command of a bundle of type binary is a path in the bundle's folder, whatever dowel's current
// folder is. A bare name and a path outside the folder stay unchanged.
func TestBinary(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{"server/run": "/b/server/run", "${__dirname}/server/run": "/b/server/run", "./server/run": "/b/server/run", "/bin/sh": "/b/bin/sh", "sh": "sh", "../run": "../run"} {
		m := Manifest{Name: "x", Version: "1"}
		m.Server.Type, m.Server.Config.Command = "binary", command
		p := m.Plan("/b")
		got := p.Build(install.Values{}).Command
		if runtime.GOOS == "windows" {
			got = strings.TrimSuffix(filepath.ToSlash(got), ".exe")
		}
		if got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
	uv := Manifest{Name: "x", Version: "1", ManifestVersion: "0.4"}
	uv.Server.Type, uv.Server.EntryPoint = "uv", "src/server.py"
	p := uv.Plan("/b")
	if s := p.Build(install.Values{}); s.Command != "uv" || strings.Join(s.Args, " ") != "run --directory /b src/server.py" {
		t.Errorf("%+v", s)
	}
}

// A bundle with an entry outside its folder, or with a wrong manifest, is not opened.
func TestHostileBundles(t *testing.T) {
	t.Parallel()
	good := file{name: "manifest.json", text: manifest}
	for says, files := range map[string][]file{
		"outside the bundle's folder":  {good, {name: "../evil", text: "x"}},
		"not portable":                 {good, {name: `a\..\..\evil`, text: "x"}},
		"entry \"/etc/evil\"":          {good, {name: "/etc/evil", text: "x"}},
		"entry \"C:/evil\"":            {good, {name: "C:/evil", text: "x"}},
		"entry \"a\\nb\"":              {good, {name: "a\nb", text: "x"}},
		"is a link":                    {good, {name: "link", text: "/etc", mode: fs.ModeSymlink | 0o777}, {name: "link/x", text: "x"}},
		"neither a file nor a folder":  {good, {name: "pipe", mode: fs.ModeNamedPipe | 0o644}},
		"is there twice":               {good, {name: "a.js", text: "1"}, {name: "A.js", text: "2"}},
		"no manifest.json":             {{name: "server.js", text: "x"}},
		"manifest.json is malformed":   {{name: "manifest.json", text: "{"}},
		"has no manifest_version":      {{name: "manifest.json", text: `{}`}},
		"dowel knows 0.1 to 0.4":       {{name: "manifest.json", text: `{"manifest_version":"2.0"}`}},
		"want node, python, binary":    {{name: "manifest.json", text: `{"dxt_version":"0.1","name":"x","version":"1","server":{"type":"exe"}}`}},
		"no server.mcp_config.command": {{name: "manifest.json", text: `{"dxt_version":"0.1","name":"x","version":"1","server":{"type":"node"}}`}},
		"manifest.json is larger":      {{name: "manifest.json", text: strings.Repeat(" ", maxManifest+1)}},
		"want a file of the bundle":    {{name: "manifest.json", text: `{"manifest_version":"0.4","name":"x","version":"1","server":{"type":"uv","entry_point":"../x"}}`}},
	} {
		b, err := Open(writeBundle(t, files...))
		if err == nil {
			b.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	path := filepath.Join(t.TempDir(), "x.mcpb")
	if err := os.WriteFile(path, []byte("no zip"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "no ZIP file") {
		t.Error(err)
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err)
	}
}

// The directory of a ZIP file can give wrong sizes. Install writes no more than the given size, and
// leaves no files after the error.
func TestLyingSizes(t *testing.T) {
	t.Parallel()
	path := writeBundle(t, file{name: "manifest.json", text: manifest}, file{name: "big", text: strings.Repeat("x", 1000)})
	b, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, f := range b.zip.File {
		if f.Name == "big" {
			f.UncompressedSize64 = 10
		}
	}
	root := filepath.Join(t.TempDir(), "bundles")
	if _, err := b.Install(t.Context(), root); err == nil {
		t.Error("it was installed")
	}
	if left, err := os.ReadDir(root); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, f := range b.zip.File {
		f.UncompressedSize64 = maxUnpacked
	}
	if err := checkEntries(b.zip.File); err == nil || !strings.Contains(err.Error(), "more than 2048 MiB") {
		t.Error(err)
	}
	if err := checkEntries(make([]*zip.File, maxEntries+1)); err == nil {
		t.Error("too many entries")
	}
}
