package daemon

import (
	"context"
	"fmt"
	"net"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/version"
)

// recordServer returns the context of a dial to a server, whose frames are recorded. It has the
// form of [hub.Options].DialContext.
func (d *Daemon) recordServer(ctx context.Context, server string) context.Context {
	return framesink.WithDialing(ctx, d.recorder.ServerConn(server))
}

// recordClient returns the context of a connection of HTTP, whose frames are recorded. It has the
// form of [http.Server].ConnContext.
func (d *Daemon) recordClient(ctx context.Context, _ net.Conn) context.Context {
	return framesink.WithServing(ctx, d.recorder.ClientConn())
}

// recordClient returns the context of a dial to the daemon. If the daemon is in this process, it
// serves the connection, and the context is the context of the serving side too.
func (p *Proxy) recordClient(ctx context.Context, _ string) context.Context {
	if d := p.serving.Load(); d != nil {
		return d.recordClient(ctx, nil)
	}
	return ctx
}

// startRecording writes the journal to a file if the options name a folder.
func (d *Daemon) startRecording() error {
	if d.options.Record == "" {
		return nil
	}
	file, err := journal.CreateRecording(d.options.Record)
	if err != nil {
		return fmt.Errorf("messages cannot be recorded: %w: choose another folder with --record", err)
	}
	d.recording.Go(func() {
		defer file.Close()
		if err := d.recorder.Save(file, version.Number(), journal.MaxRecording); err != nil {
			d.options.Warn("%v", err)
		}
	})
	return nil
}
