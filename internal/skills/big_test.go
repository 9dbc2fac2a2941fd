package skills_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/skills"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// A skill of the largest size can be read over HTTP, as text and as binary data.
func TestLargestSkillOverHTTP(t *testing.T) {
	dir := t.TempDir()
	half := skills.MaxSize/2 - 100
	put(t, dir, map[string]string{"big/SKILL.md": manifest("big"), "big/text": strings.Repeat("x", half), "big/data": strings.Repeat("\xFF", half)})
	f, err := skills.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := server.New("docs", "1.0.0", nil)
	if err := f.AddTo(s); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(streamable.Handler(s, nil))
	defer web.Close()
	c, err := client.Dial(t.Context(), web.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	big, err := skills.Get(t.Context(), c, "skill://big/SKILL.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"text", "data"} {
		if got, err := big.Read(t.Context(), c, name); err != nil || len(got.Text)+len(got.Blob) != half {
			t.Errorf("%s: %d bytes, %v", name, len(got.Text)+len(got.Blob), err)
		}
	}
}
