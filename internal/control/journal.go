package control

import (
	"bufio"
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/version"
)

// journalBatch is the number of records between two flushes of a stream that is behind.
const journalBatch = 256

// streamJournal answers with the records of the journal, one JSON object a line: those behind the
// number ?after, or from now on if it is missing. With ?follow it continues with new ones until life
// ends.
func streamJournal(w http.ResponseWriter, r *http.Request, recorder *journal.Recorder, life context.Context) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	defer context.AfterFunc(life, stop)()
	_, newest := recorder.Bounds()
	after, err := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	if err != nil {
		after = newest
	}
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	flush := http.NewResponseController(w).Flush
	if out.Encode(recorder.BootLine(version.Number())) != nil || flush() != nil {
		return
	}
	follow := r.URL.Query().Get("follow") != ""
	for cursor := recorder.Cursor(after); follow || cursor.Position() < newest; {
		records, gap, err := cursor.Next(ctx, journalBatch)
		if err != nil {
			return
		}
		if gap != (journal.Gap{}) && out.Encode(journal.GapLine(gap)) != nil {
			return
		}
		for _, record := range records {
			if out.Encode(journal.LineOf(record)) != nil {
				return
			}
		}
		if flush() != nil {
			return
		}
	}
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
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, maxJournalLine)
		for number := 1; lines.Scan(); number++ {
			l, err := journal.ParseLine(lines.Bytes(), number)
			if !yield(l, err) || err != nil {
				return
			}
		}
		if err := lines.Err(); err != nil && ctx.Err() == nil {
			yield(journal.Line{}, err)
		}
	}
}
