package journal_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/secretmask"
)

const (
	sent     = framesink.Sent
	received = framesink.Received
)

// readAll returns all records of a recorder, and the lost ones.
func readAll(t *testing.T, r *journal.Recorder) (records []journal.Record, lost uint64) {
	t.Helper()
	_, newest := r.Bounds()
	c := r.Cursor(0)
	for last := uint64(0); last < newest; {
		some, gap, err := c.Next(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		lost += gap.Len()
		last = max(last, gap.To)
		for _, record := range some {
			records = append(records, record)
			last = record.Seq
		}
	}
	return records, lost
}

// lastStates returns the last state of each operation.
func lastStates(t *testing.T, r *journal.Recorder) map[uint64]journal.Operation {
	t.Helper()
	last := map[uint64]journal.Operation{}
	records, _ := readAll(t, r)
	for _, record := range records {
		if record.Operation != nil {
			last[record.Operation.ID] = *record.Operation
		}
	}
	return last
}

// newRecorder returns a recorder that is closed at the end of the test.
func newRecorder(t testing.TB, o journal.Options) *journal.Recorder {
	r := journal.New(o)
	t.Cleanup(r.Close)
	return r
}

func TestFramesAndOperation(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, journal.Options{})
	c := r.ClientConn()
	c.AddFrame(received, []byte(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo","arguments":{"x":1},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"cursor"}}}}`), nil)
	c.AddFrame(sent, []byte(`{"jsonrpc":"2.0","id":"a","result":{"isError":true,"content":[]}}`), nil)
	records, lost := readAll(t, r)
	if lost != 0 || len(records) != 4 {
		t.Fatalf("%d records, %d lost", len(records), lost)
	}
	request, begun, response, ended := records[0].Frame, records[1].Operation, records[2].Frame, records[3].Operation
	if request.Kind != journal.Request || request.Name != "echo" || request.Client != "cursor" || request.Revision != "2026-07-28" || request.Operation != 1 {
		t.Errorf("the request is %+v", request)
	}
	if begun.Status != journal.Pending || begun.ID != 1 || begun.Client != "cursor" {
		t.Errorf("the operation begins as %+v", begun)
	}
	if response.Method != "tools/call" || response.Status != journal.ToolError || response.Operation != 1 || response.ID.String() != `"a"` {
		t.Errorf("the response is %+v", response)
	}
	if ended.Status != journal.ToolError || ended.End.IsZero() || ended.Frames != 2 || ended.Received != request.Size || ended.Sent != response.Size {
		t.Errorf("the operation ends as %+v", ended)
	}
}

// A reader that is too slow finds a gap, and the records behind it.
func TestRingLosesTheOldest(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, journal.Options{Bytes: 20_000})
	c := r.ClientConn()
	for i := range 100 {
		c.AddFrame(received, fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/x","params":{"n":%d,"pad":%q}}`, i, strings.Repeat("x", 200)), nil)
	}
	oldest, newest := r.Bounds()
	records, lost := readAll(t, r)
	if newest != 100 || oldest < 50 || lost != oldest-1 || len(records) != int(newest-oldest+1) {
		t.Errorf("records %d to %d, %d read, %d lost", oldest, newest, len(records), lost)
	}
	if last := records[len(records)-1]; !bytes.Contains(last.Frame.Body, []byte(`"n":99,`)) {
		t.Errorf("the last record is %s", last.Frame.Body)
	}
}

// A record that is larger than the ring is kept alone.
func TestLargeFrame(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, journal.Options{Bytes: 10_000})
	c := r.ClientConn()
	c.AddFrame(received, []byte("first"), nil)
	c.AddFrame(received, append([]byte(`{"jsonrpc":"2.0","id":1,"method":"big","params":{"x":"`), append(bytes.Repeat([]byte("word "), 1<<20), `"}}`...)...), nil)
	records, lost := readAll(t, r)
	big := journal.Record{}
	for _, record := range records {
		if record.Frame != nil {
			big = record
		}
	}
	if lost == 0 && len(records) == 0 {
		t.Fatal("nothing is kept")
	}
	if big.Frame != nil && (big.Frame.Method != "big" || big.Frame.Size < 5<<20 || len(big.Frame.Body) > journal.MaxBody || !big.Frame.IsCut()) {
		t.Errorf("%s, %d bytes, %d kept", big.Frame.Method, big.Frame.Size, len(big.Frame.Body))
	}
}

// Frames that come faster than they can be stored are lost, and the gap says how many.
func TestInboxOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := journal.New(journal.Options{})
		defer r.Close()
		c := r.ClientConn()
		const n = 40_000
		for range n {
			c.AddFrame(received, []byte("x"), nil) // no time passes, so nothing is stored meanwhile
		}
		records, lost := readAll(t, r)
		if uint64(len(records))+lost != n || lost == 0 || len(records) == 0 {
			t.Errorf("%d records and %d lost, want %d together", len(records), lost, n)
		}
		c.AddFrame(received, []byte("y"), nil)
		if _, newest := r.Bounds(); newest != n+1 {
			t.Errorf("the next frame has number %d", newest)
		}
	})
}

// A waiting cursor gets frames within a moment, and ends with its context and with the journal.
func TestCursorWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := journal.New(journal.Options{})
		defer r.Close()
		cursor, c := r.Cursor(0), r.ClientConn()
		go func() { time.Sleep(time.Second); c.AddFrame(received, []byte("one"), nil) }()
		start := time.Now()
		records, _, err := cursor.Next(t.Context(), 10)
		if err != nil || len(records) != 1 || string(records[0].Frame.Body) != "one" || records[0].Frame.Kind != journal.Stray {
			t.Fatalf("%v, %v", records, err)
		}
		if late := time.Since(start) - time.Second; late > 100*time.Millisecond {
			t.Errorf("the frame came %v late", late)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := cursor.Next(ctx, 10); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		go r.Close()
		if _, _, err := cursor.Next(t.Context(), 10); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("got %v", err)
		}
	})
}

// Secrets are masked in bodies, names and header fields.
func TestMasked(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, journal.Options{Secrets: secretmask.NewSet("hush-hush")})
	c := r.ServerConn("s")
	c.AddFrame(sent, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hush-hush","arguments":{"a":"hush-hush","header":"Authorization: Bearer abcdef123456"}}}`),
		map[string][]string{"Authorization": {"Bearer abcdef123456"}, "X-Api-Key": {"k1k1k1"}, "Mcp-Name": {"hush-hush"}})
	c.AddFrame(received, []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no hush-hush, no ghp_0123456789abcdef"}}`), nil)
	records, _ := readAll(t, r)
	text := ""
	for _, record := range records {
		if f := record.Frame; f != nil {
			text += fmt.Sprintf("%s %s %v\n", f.Body, f.Name, f.Header)
		} else {
			text += fmt.Sprintf("%+v\n", *record.Operation)
		}
	}
	for _, secret := range []string{"hush-hush", "abcdef123456", "k1k1k1", "ghp_0123456789abcdef"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is recorded:\n%s", secret, text)
		}
	}
}

// A secret at the place where a long frame is cut does not stay in part.
func TestCutLeavesNoPartOfASecret(t *testing.T) {
	t.Parallel()
	const secret = "hush-hush-hush"
	for offset := range len(secret) + 2 {
		r := newRecorder(t, journal.Options{Secrets: secretmask.NewSet(secret)})
		c := r.ClientConn()
		c.AddFrame(received, []byte(strings.Repeat("x", journal.MaxBody-offset)+secret+strings.Repeat("y", 100)), nil)
		records, _ := readAll(t, r)
		if body := records[0].Frame.Body; len(body) > journal.MaxBody || bytes.Contains(body, []byte("hu")) {
			t.Errorf("offset %d: a part of the secret is left: …%s", offset, body[len(body)-20:])
		}
	}
}

func BenchmarkAddFrame(b *testing.B) {
	for _, size := range []int{200, 2_000, 20_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r := newRecorder(b, journal.Options{})
			c := r.ClientConn()
			pad := strings.Repeat("a word or two, ", size/15)[:max(0, size-150)]
			request := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":%q}}}`, pad)
			response := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":%q}]}}`, pad)
			b.ReportAllocs()
			b.SetBytes(int64(len(request)))
			for i := 0; b.Loop(); i++ {
				if i%2 == 0 {
					c.AddFrame(received, request, nil)
				} else {
					c.AddFrame(sent, response, nil)
				}
				if i%128 == 0 {
					r.Flush() // storing counts too
				}
			}
		})
	}
}

// Recording takes less than one allocation for each frame.
func TestAllocations(t *testing.T) {
	r := newRecorder(t, journal.Options{Bytes: 1 << 20})
	c := r.ClientConn()
	frames := []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}}`,
	}
	record := func() {
		for i, frame := range frames {
			c.AddFrame(framesink.Direction(1-i), []byte(frame), nil)
		}
	}
	const calls = 1000
	run := func() {
		for range calls {
			record()
		}
		r.Flush()
	}
	run()
	perFrame := testing.AllocsPerRun(5, run) / calls / float64(len(frames))
	const conversion = 1 // of the test's string
	if perFrame -= conversion; perFrame > 1 {
		t.Errorf("%.2f allocations for each frame, at most 1 is allowed", perFrame)
	}
}
