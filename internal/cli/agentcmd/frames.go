package agentcmd

import (
	"context"
	"errors"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/journal"
)

// followDaemonFrames calls show with each frame that the journal of the running dowel has and will
// have, until ctx ends or the running dowel does.
func followDaemonFrames(ctx context.Context, running *control.Client, show func(*journal.Frame)) error {
	for line, err := range running.Journal(ctx, control.JournalOptions{Kept: true, Follow: true}) {
		if err != nil {
			return err
		}
		if record, ok := line.Record(); ok && record.Frame != nil {
			show(record.Frame)
		}
	}
	if ctx.Err() == nil {
		return errors.New("the running dowel has ended")
	}
	return nil
}

// recordBytes limits the journal of a conversation with named servers.
const recordBytes = 4 << 20

// hubRecorder is the journal of a hub of this process.
type hubRecorder struct {
	*journal.Recorder
	definitions []hub.Definition // their secrets are masked
}

func newHubRecorder(definitions []hub.Definition) hubRecorder {
	return hubRecorder{journal.New(journal.Options{Bytes: recordBytes}), definitions}
}

// maskFrame returns a frame without the secrets of the servers.
func (r hubRecorder) maskFrame(f *journal.Frame) *journal.Frame {
	masked := *f
	for _, d := range r.definitions {
		if d.Mask != nil {
			masked.Body = []byte(d.Mask(string(masked.Body)))
		}
	}
	return &masked
}

// dialContext has the form of [hub.Options].DialContext.
func (r hubRecorder) dialContext(ctx context.Context, server string) context.Context {
	return framesink.WithDialing(ctx, r.ServerConn(server))
}

// followFrames calls show with each frame that the journal has and will have, until ctx ends.
func (r hubRecorder) followFrames(ctx context.Context, show func(*journal.Frame)) error {
	const batch = 64
	for cursor := r.Cursor(0); ; {
		records, _, err := cursor.Next(ctx, batch)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		for _, record := range records {
			if record.Frame != nil {
				show(r.maskFrame(record.Frame))
			}
		}
	}
}
