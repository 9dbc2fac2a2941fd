package docs

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxCommentColumns bounds a comment line, with four columns for a tab.
const maxCommentColumns = 100

// Lines of comments are narrow enough to read, in the tests and in the other modules too.
func TestCommentLinesAreNarrow(t *testing.T) {
	t.Parallel()
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, line := range wideComments(src) {
			t.Errorf("%s:%d: the comment line has more than %d columns", path[len(root)+1:], line, maxCommentColumns)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 1000 {
		t.Errorf("only %d files were found", files)
	}
}

func TestWideComments(t *testing.T) {
	t.Parallel()
	words := strings.Repeat(" word", 19) // with the slashes, 97 columns
	src := "package p\n\n" +
		"//" + words + " one\n" + // line 3, too wide
		"//" + words + "\n" +
		"//\t" + words + " code\n" +
		"// https://example.com/" + strings.Repeat("x", 90) + "\n" +
		"func f() {\n" +
		"\t//" + words + "\n" + // line 8, too wide with its tab
		"\tg() //" + words + "\n" +
		"\t// Output:\n" +
		"\t//" + words + "\n" +
		"}\n"
	got := wideComments([]byte(src))
	if len(got) != 2 || got[0] != 3 || got[1] != 8 {
		t.Errorf("wide comments are in the lines %v, want 3 and 8", got)
	}
}

// wideComments returns the numbers of the lines of prose that are too wide. Code, tables, the
// output of an example, and lines with a word that does not fit into half a line are no prose, and
// a comment behind code is not a line of its own.
func wideComments(src []byte) (wide []int) {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	isOutput, last := false, 0 // the last comment line, and whether it is an example's output
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return wide
		}
		at := file.Position(pos)
		indent := string(src[at.Offset-at.Column+1 : at.Offset])
		if tok != token.COMMENT || strings.TrimSpace(indent) != "" {
			continue
		}
		isOutput = isOutput && at.Line == last+1 || text == "// Output:" || text == "// Unordered output:"
		last = at.Line
		if !isOutput && isProse(text) && columns(indent+text) > maxCommentColumns {
			wide = append(wide, at.Line)
		}
	}
}

// isProse reports whether a comment is a line of sentences.
func isProse(comment string) bool {
	text, isText := strings.CutPrefix(comment, "// ")
	if !isText || strings.HasPrefix(text, "|") || strings.Contains(text, "\t") {
		return false
	}
	for word := range strings.FieldsSeq(text) {
		if utf8.RuneCountInString(word) > maxCommentColumns/2 {
			return false
		}
	}
	return true
}

// columns returns the width of a line.
func columns(line string) int { return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t") }
