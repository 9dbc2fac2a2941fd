package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
)

var update = flag.Bool("update", false, "write the expected files anew")

// environment is the environment of all golden tests.
var environment = map[string]string{"TOKEN": "t0ken-value", "REGION": "eu-central", "API_KEY": "k3y-value", "BLANK": ""}

// TestGolden reads each folder of testdata/golden, which holds a home and a project, and compares
// the result with want.json.
func TestGolden(t *testing.T) {
	cases, err := os.ReadDir("testdata/golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name(), func(t *testing.T) { checkGolden(t, filepath.Join("testdata/golden", c.Name())) })
	}
}

func checkGolden(t *testing.T, folder string) {
	root := copyFolder(t, folder)
	o := testOptions(root)
	got := map[string]any{}
	for _, f := range Discover(o, dialectNames()...) {
		key := strings.TrimSpace(f.Dialect + " " + string(f.Scope) + " " + filepath.ToSlash(f.Path) + " " + f.Section)
		got[key] = map[string]any{"problems": problemTexts(f.Problems), "servers": viewServers(f.Servers, o.Variables())}
	}
	if name := filepath.Base(folder); name == "dowel" || name == "models" {
		set := Load(o)
		got["Load"] = viewSet(set)
		if name == "models" {
			got["models"] = viewModels(set)
		}
	}
	text, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(bytes.ReplaceAll(text, []byte(root+"/"), nil), '\n')
	compareWithFile(t, filepath.Join(folder, "want.json"), bytes.ReplaceAll(text, []byte(root), []byte(".")))
}

func compareWithFile(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
}

// copyFolder copies a folder to a known path. PROJECT in its files becomes the path of the project.
func copyFolder(t *testing.T, folder string) string {
	t.Helper()
	root := t.TempDir()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(folder, path)
		text = bytes.ReplaceAll(text, []byte("PROJECT"), []byte(filepath.ToSlash(root)+"/project"))
		return writeFile(filepath.Join(root, rel), string(text))
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

func testOptions(root string) Options {
	return Options{
		Project: root + "/project", Home: root + "/home", GOOS: "linux",
		Env: func(name string) (string, bool) {
			if name == "HOME" {
				return root + "/home", true
			}
			value, ok := environment[name]
			return value, ok
		},
	}
}

func dialectNames() []string {
	var all []string
	for _, d := range Dialects() {
		all = append(all, d.Name)
	}
	return all
}

func problemTexts(problems []Problem) []string {
	var all []string
	for _, p := range problems {
		all = append(all, p.String())
	}
	return all
}

func viewServers(servers []*Server, v Variables) map[string]any {
	all := map[string]any{}
	for _, s := range servers {
		all[s.Name] = viewServer(s, v)
	}
	return all
}

func viewServer(s *Server, v Variables) map[string]any {
	out := map[string]any{"at": s.At.String(), "spec": nonZero(reflect.ValueOf(s.Spec)), "trust": s.TrustFacts(Variables{}).Lines()}
	if len(s.Unknown) > 0 {
		out["unknown"] = s.Unknown
	}
	if !s.Valid() {
		out["invalid"] = true
		return out
	}
	d, problems := s.Resolve(v)
	if len(problems) > 0 {
		out["needs"] = problemTexts(problems)
	}
	if d == nil {
		return out
	}
	if !reflect.DeepEqual(d.Spec, s.Spec) {
		out["resolved"] = nonZero(reflect.ValueOf(d.Spec))
	}
	if len(d.Secrets) > 0 {
		out["secrets"] = d.Secrets
	}
	for _, value := range d.Values {
		if len(value.From) > 0 {
			out["from "+value.Field] = value.At.String() + ": " + strings.Join(value.From, ", ")
		}
	}
	return out
}

// nonZero returns the fields of a struct that are not zero.
func nonZero(v reflect.Value) map[string]any {
	out := map[string]any{}
	for i := range v.NumField() {
		field, name := v.Field(i), v.Type().Field(i).Name
		if field.IsZero() || !v.Type().Field(i).IsExported() {
			continue
		}
		if field.Kind() == reflect.Pointer {
			field = field.Elem()
		}
		switch value := field.Interface().(type) {
		case time.Duration:
			out[name] = value.String()
		case hub.ToolRules, OAuth:
			out[name] = nonZero(field)
		case hub.Policy:
			maps.Copy(out, nonZero(field))
		default:
			out[name] = value
		}
	}
	return out
}

func viewSet(set *Set) map[string]any {
	var order, shadowed, files []string
	for _, s := range set.Servers {
		order = append(order, s.Name+" "+s.At.String())
	}
	for _, s := range set.Shadowed {
		shadowed = append(shadowed, s.Name+" "+s.At.String()+" by "+s.By.At.String())
	}
	for _, f := range set.Files {
		text := string(f.Scope) + " " + f.Dialect + " " + f.Path
		if f.Missing {
			text += " missing"
		}
		files = append(files, text)
	}
	resolved, problems := set.Gateway.Resolve(set.Variables)
	gateway, places := resolved, map[string]string{}
	gateway.positions = nil
	for field, at := range resolved.positions {
		places[field] = at.String()
	}
	return map[string]any{"servers": order, "shadowed": shadowed, "files": files, "problems": problemTexts(set.Problems),
		"gateway": gateway, "gateway needs": problemTexts(problems), "gateway places": places}
}

func viewModels(set *Set) map[string]any {
	all := map[string]any{"(the one that is meant)": set.DefaultModel}
	for _, m := range set.Models {
		resolved, problems := m.Resolve(set.Variables)
		resolved.Problems, resolved.positions, resolved.At = nil, nil, Position{}
		all[m.Name] = map[string]any{"at": m.At.String(), "url at": m.Where("url").String(), "resolved": nonZero(reflect.ValueOf(resolved)), "problems": problemTexts(problems)}
	}
	return all
}
