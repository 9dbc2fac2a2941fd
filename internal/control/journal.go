package control

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/version"
)

// journalBatch is the number of records between two flushes of a stream that is behind.
const journalBatch = 256

// streamJournal answers with the records of the journal, one JSON object a line: those behind the
// number ?after, or from now on if it is missing. With ?follow it continues with new ones until
// life ends. With ?server it has only the frames between dowel and that server. The end of the body
// of a POST ends the answer, after all records until then.
func streamJournal(w http.ResponseWriter, r *http.Request, recorder *journal.Recorder, life context.Context) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	defer context.AfterFunc(life, stop)()
	s := journalStream{server: r.URL.Query().Get("server"), out: json.NewEncoder(w), flush: http.NewResponseController(w).Flush}
	s.out.SetEscapeHTML(false)
	_, s.until = recorder.Bounds()
	after, err := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	if err != nil {
		after = s.until
	}
	cursor := recorder.Cursor(after)
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	if r.Method == http.MethodPost {
		_ = http.NewResponseController(w).EnableFullDuplex() // fails for HTTP/2 only, which has it
		go func() {
			_, _ = io.Copy(io.Discard, r.Body) // an error means that the client is gone
			unfollow()
		}()
	}
	if s.out.Encode(recorder.BootLine(version.Number())) != nil || s.flush() != nil {
		return
	}
	if r.URL.Query().Get("follow") != "" {
		for s.copyNext(following, cursor) {
		}
		_, s.until = recorder.Bounds()
	}
	for cursor.Position() < s.until && s.copyNext(ctx, cursor) {
	}
}

// journalStream is a stream of records to one client.
type journalStream struct {
	server string // "" means all records
	out    *json.Encoder
	flush  func() error
	until  uint64 // the last record, unless the client follows
}

// copyNext writes the next records. It reports false when ctx has ended or the client is gone.
func (s *journalStream) copyNext(ctx context.Context, cursor *journal.Cursor) bool {
	records, gap, err := cursor.Next(ctx, journalBatch)
	if err != nil || gap != (journal.Gap{}) && s.out.Encode(journal.GapLine(gap)) != nil {
		return false
	}
	for _, record := range records {
		if f := record.Frame; s.server != "" && (f == nil || f.Leg != journal.ServerLeg || f.Server != s.server) {
			continue
		}
		if s.out.Encode(journal.LineOf(record)) != nil {
			return false
		}
	}
	return s.flush() == nil
}

// JournalOptions choose the records of [Client.Journal].
type JournalOptions struct {
	// Kept begins with the oldest record, instead of now.
	Kept bool
	// Follow continues with new records until the context ends.
	Follow bool
}

// maxJournalLine limits a line of a stream. A body of a megabyte may take six in JSON.
const maxJournalLine = 8 << 20

// Journal iterates over the journal of the running dowel.
func (c *Client) Journal(ctx context.Context, o JournalOptions) iter.Seq2[journal.Line, error] {
	query := url.Values{}
	if o.Kept {
		query.Set("after", "0")
	}
	if o.Follow {
		query.Set("follow", "1")
	}
	return func(yield func(journal.Line, error) bool) {
		resp, err := c.sendRequest(ctx, http.MethodGet, "/v1/journal?"+query.Encode())
		if err != nil {
			yield(journal.Line{}, err)
			return
		}
		defer resp.Body.Close()
		for l, err := range readJournal(resp.Body) {
			if err != nil && ctx.Err() != nil || !yield(l, err) {
				return
			}
		}
	}
}

// readJournal iterates over the lines of a stream. An error ends it.
func readJournal(body io.Reader) iter.Seq2[journal.Line, error] {
	return func(yield func(journal.Line, error) bool) {
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, maxJournalLine)
		for number := 1; lines.Scan(); number++ {
			l, err := journal.ParseLine(lines.Bytes(), number)
			if !yield(l, err) || err != nil {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(journal.Line{}, err)
		}
	}
}

// FollowFrames calls show with each frame between the running dowel and a server from now on, or
// with the gap if records of the journal are lost; the frame is nil then. Calls of show do not
// overlap. stop ends this after all frames until now; it must be called.
func (c *Client) FollowFrames(ctx context.Context, server string, show func(*journal.Frame, journal.Gap)) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	body, end := io.Pipe()
	query := url.Values{"follow": {"1"}, "server": {server}}
	resp, err := c.sendBody(ctx, http.MethodPost, "/v1/journal?"+query.Encode(), body) //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		cancel()
		return nil, err
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer resp.Body.Close()
		for l, err := range readJournal(resp.Body) {
			if err != nil {
				return // the running dowel ends, or the caller is done
			}
			if r, ok := l.Record(); ok || l.Gap() != (journal.Gap{}) {
				show(r.Frame, l.Gap())
			}
		}
	}()
	return func() {
		defer cancel()
		end.Close()
		select {
		case <-read:
		case <-time.After(stopTimeout):
			cancel()
			<-read
		}
	}, nil
}

// stopTimeout limits how long the end of [Client.FollowFrames] waits for the last frames.
const stopTimeout = 5 * time.Second
