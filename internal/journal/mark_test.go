package journal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/callmark"
	"github.com/dowel-mcp/dowel/internal/journal"
)

// The mark of a call is recorded, also behind arguments that are cut, and lines keep it. A mark
// that is too long is left out.
func TestMark(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, journal.Options{})
	c := r.ClientConn()
	for i, mark := range []string{"m1", strings.Repeat("m", callmark.MaxLength+1)} {
		c.AddFrame(received, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"x":%q},"_meta":{%q:%q}}}`,
			i, strings.Repeat("x", journal.MaxBody+1), callmark.Meta, mark), nil)
	}
	var marks []string
	records, _ := readAll(t, r)
	for _, record := range records {
		if record.Frame == nil {
			continue
		}
		line := journal.LineOf(record)
		again, ok := line.Record()
		if !ok || again.Frame.Mark != record.Frame.Mark || !record.Frame.IsCut() {
			t.Errorf("the line %+v has the frame %+v", line, again.Frame)
		}
		marks = append(marks, record.Frame.Mark)
	}
	if len(marks) != 2 || marks[0] != "m1" || marks[1] != "" {
		t.Errorf("the marks are %q", marks)
	}
}
