package data

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
)

func wantXML(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("not XML: %v\n%s", err, text)
		}
	}
}

func TestPathsStayInside(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret.csv")
	if err := os.WriteFile(secret, []byte("a\nsecret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := errors.Join(
		os.Symlink(secret, filepath.Join(root, "link.csv")),
		os.Symlink(outside, filepath.Join(root, "folder")),
		os.Mkdir(filepath.Join(root, "folder.csv"), 0o755),
	); err != nil {
		t.Fatal(err)
	}
	c := dial(t, Options{Roots: []string{root}}, map[string]string{"a.csv": "a\n1\n"})
	relative, err := filepath.Rel(root, secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{secret, relative, "link.csv", "folder/secret.csv", "x/../" + relative, "folder.csv", "a\x00.csv", "a.csv/b.csv", "missing.csv", "a.txt"} {
		wantToolError(t, c, "analyze_csv", analyzeIn{path}, "")
		if _, err := c.ReadResource(t.Context(), uriPrefix+strings.ReplaceAll(path, "\x00", "%00")); err == nil {
			t.Errorf("the resource %q can be read", path)
		}
	}
	for _, path := range []string{"a.csv", filepath.Join(root, "a.csv"), "./a.csv", "folder/../a.csv"} {
		if out, err := client.Call[Analysis](t.Context(), c, "analyze_csv", analyzeIn{path}); path != "folder/../a.csv" && (err != nil || out.Rows != 1) {
			t.Errorf("%s: %v, %v", path, out, err)
		}
	}
}

func TestHostileText(t *testing.T) {
	c := dial(t, Options{}, map[string]string{
		"empty.csv":   "",
		"header.csv":  "a,a,,A\n",
		"nul.csv":     "a\n\x00\xff\n",
		"ragged.csv":  "a,b\n1\n1,2,3\n",
		"bare.csv":    "size\n5\" pipe\n",
		"open.csv":    "a\n\"" + strings.Repeat("x\n", maxRow),
		"wide.csv":    strings.Repeat("a,", maxColumns+1) + "\n",
		"utf16.csv":   "\xff\xfea\x00",
		"huge.jsonl":  `{"a":"` + strings.Repeat("x", maxRow) + `"}`,
		"broken.json": "{",
		"list.jsonl":  "[1]\n",
		"deep.jsonl":  `{"a":` + strings.Repeat("[", 100_000) + "\n",
		"two.jsonl":   "{} {}\n",
		"late.jsonl":  "{\"a\":1}\nnonsense\n",
		"no.parquet":  "PAR1 is not all of it",
	})
	for path, want := range map[string]string{
		"empty.csv": "empty", "open.csv": "a quote may be missing", "wide.csv": "columns", "utf16.csv": "UTF-16",
		"huge.jsonl": "longer than", "broken.json": "want a file that ends", "list.jsonl": "not a JSON object",
		"deep.jsonl": "line 1", "two.jsonl": "line 1", "late.jsonl": "line 2", "no.parquet": "not a Parquet file",
	} {
		wantToolError(t, c, "analyze_csv", analyzeIn{path}, want)
	}
	wantToolError(t, c, "query", queryIn{SQL: "SELECT count(*) FROM t", Tables: map[string]string{"t": "open.csv"}, Limit: 1}, "a quote may be missing")
	out := call[Analysis](t, c, "analyze_csv", analyzeIn{"header.csv"})
	wantJSON(t, []string{out.Columns[0].Name, out.Columns[1].Name, out.Columns[2].Name, out.Columns[3].Name, out.Columns[0].Type},
		`["a","a_2","column_3","A_3","empty"]`)
	out = call[Analysis](t, c, "analyze_csv", analyzeIn{"ragged.csv"})
	if out.Ragged != 2 || out.Columns[1].Missing != 1 {
		t.Errorf("%+v", out)
	}
	for path, want := range map[string]string{"nul.csv": "\uFFFD\uFFFD", "bare.csv": "5\" pipe"} {
		if got := call[Analysis](t, c, "analyze_csv", analyzeIn{path}).Columns[0].Min; got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestResources(t *testing.T) {
	c := dial(t, Options{}, map[string]string{"b.csv": "x,y\n", "sub/a b.tsv": "z\n", ".hidden/c.csv": "x\n", "note.txt": "x"})
	var uris []string
	for r, err := range c.Resources(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		uris = append(uris, r.URI)
	}
	wantJSON(t, uris, `["data:///b.csv","data:///sub/a%20b.tsv"]`)
	for i, want := range []string{`["x","y"]`, `["z"]`} {
		contents, err := c.ReadResource(t.Context(), uris[i])
		if err != nil || !strings.Contains(contents.Contents[0].Text, want) {
			t.Errorf("%s: %v, %v", uris[i], contents, err)
		}
	}
}

func sectionOf(b []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
}
