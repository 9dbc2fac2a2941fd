package skills

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
)

// Each difference from the entry is refused by itself: here the others agree.
func TestVerify(t *testing.T) {
	const text = "---\nname: a\ndescription: b\n---\nBody\n"
	frontmatter := []byte(`{"description":"b","name":"a"}`)
	right := File{"skill://a/SKILL.md", digestOf([]byte(text)), int64(len(text))}
	for _, tt := range []struct {
		name        string
		frontmatter string
		f           *File
		contents    mcp.ResourceContents
		want        string
	}{
		{"right", "", &right, mcp.ResourceContents{Text: text}, ""},
		{"as binary data", "", &right, mcp.ResourceContents{Blob: []byte(text)}, ""},
		{"dynamic", "", nil, mcp.ResourceContents{Text: text}, ""},
		{"another size", "", &File{right.URI, right.Digest, right.Size + 1}, mcp.ResourceContents{Text: text}, "bytes, and the entry of the skill says"},
		{"another digest", "", &File{right.URI, digestOf(nil), right.Size}, mcp.ResourceContents{Text: text}, "its digest differs"},
		{"another frontmatter", `{"name":"a"}`, &right, mcp.ResourceContents{Text: text}, "its frontmatter differs"},
		{"another frontmatter, dynamic", `{"name":"a","description":"c"}`, nil, mcp.ResourceContents{Text: text}, "its frontmatter differs"},
		{"too large, dynamic", "", nil, mcp.ResourceContents{Blob: make([]byte, MaxSize+1)}, "more than 16 MiB"},
	} {
		s := &Skill{URI: right.URI, Frontmatter: frontmatter}
		if tt.frontmatter != "" {
			s.Frontmatter = []byte(tt.frontmatter)
		}
		err := s.verify(right.URI, tt.f, &tt.contents)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if err == nil && tt.contents.Text != text {
			t.Errorf("%s: the text is %q", tt.name, tt.contents.Text)
		}
	}
}
