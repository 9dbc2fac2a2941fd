// Package watch is dowel watch: it shows changes that a server announces, until a limit or Ctrl-C.
package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/spf13/cobra"
)

// Options holds the flags of a watch.
type Options struct {
	uris  []string
	count int
}

// NewCommand returns the command watch.
func NewCommand(f *factory.Factory) *cobra.Command {
	conn := connect.New(f)
	var opts Options
	c := conn.Command(&cobra.Command{
		Use:   "watch SERVER [URI]…",
		Short: "Print changes at a server, until Ctrl-C",
		Long: `Print a line for each change: of the lists of tools, prompts and resources, and of the resources with the given URIs.
If the connection is lost, dowel restores it, or starts the server again if dowel had started it. A line "gap" says that
changes may have been missed meanwhile. The command ends after --count changes, or after --timeout with exit code 124.
With --json each change is a line with time, method and params, or gap.

` + connect.NamingHelp,
		Example: `  dowel watch everything
  dowel watch everything test://watched-resource --json
  dowel watch everything --count 1 --timeout 30s
  dowel watch --count 1 -- npx -y @modelcontextprotocol/server-everything`,
	}, func(ctx context.Context, t connect.Target, rest []string) error {
		opts.uris = append(opts.uris, rest...)
		return runWatch(ctx, conn, t, opts)
	})
	c.Flags().StringArrayVar(&opts.uris, "uri", nil, "a resource to watch (`URI`, repeatable; the same as a word)")
	c.Flags().IntVarP(&opts.count, "count", "n", 0, "end after this `number` of changes; 0: never")
	return c
}

func runWatch(ctx context.Context, conn *connect.Connection, t connect.Target, opts Options) error {
	o, err := conn.DialOptions(t)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if conn.TotalTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, conn.TotalTimeout, &client.TimeoutError{Kind: client.TimeoutTotal, After: conn.TotalTimeout})
		defer cancel()
	}
	show := &changePrinter{factory: conn.Factory, limit: opts.count, onLimit: func() { end(errLimitReached) }}
	failed := make(chan error, 1)
	o.Restart = client.Restart{}
	o.OnState = func(s client.State) { reportState(conn.Factory, s, failed) }
	// Some servers announce changes without saying for which subscription.
	o.OnNotification = show.printNotification
	err = conn.DoWithOptions(ctx, t, o, func(c *client.Client) error {
		filter := mcp.SubscriptionFilter{
			ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true, ResourceSubscriptions: opts.uris,
		}
		subscription, err := c.Watch(ctx, filter)
		if errors.Is(err, client.ErrNothingToWatch) && len(opts.uris) == 0 {
			return waitWithoutChanges(ctx, conn.Factory, c, failed)
		}
		if err != nil {
			return err
		}
		warnUnwatched(ctx, conn.Factory, c, opts.uris, subscription.Acknowledged().ResourceSubscriptions)
		for change, err := range subscription.Changes() {
			if err != nil {
				return err
			}
			show.printChange(change)
		}
		return context.Cause(ctx)
	})
	switch {
	case errors.Is(err, errLimitReached):
		return nil
	case opts.count > 0 && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("saw %d of %d changes: %w", show.shownCount(), opts.count, err)
	}
	return err
}

// errLimitReached is the cause of a context that ended because --count was reached.
var errLimitReached = errors.New("the number of changes in --count was reached")

// waitWithoutChanges waits until ctx ends or the connection fails for good. It is for a server that
// announces no changes: the user still sees its log messages, and whether the connection is lost
// and restored.
func waitWithoutChanges(ctx context.Context, f *factory.Factory, c *client.Client, failed <-chan error) error {
	f.Warn("%s announces no changes; only its connection and, with --log, its messages are watched", c.Server().Info.Name)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-failed:
		return err
	}
}

// changePrinter writes changes until it reaches a limit. It is safe for concurrent use.
type changePrinter struct {
	factory *factory.Factory
	onLimit func() // called once, when the limit is reached

	mu    sync.Mutex
	limit int // 0: no limit
	shown int
}

// printChange writes a change, unless the limit is reached.
func (p *changePrinter) printChange(c client.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit > 0 && p.shown == p.limit {
		return
	}
	writeChange(p.factory, c)
	if p.shown++; p.shown == p.limit {
		p.onLimit()
	}
}

// shownCount returns the number of written changes.
func (p *changePrinter) shownCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown
}

// printNotification writes the change of a notification that belongs to no subscription.
func (p *changePrinter) printNotification(n mcp.Notification) {
	switch n.Method {
	case mcp.NotificationToolsChanged, mcp.NotificationPromptsChanged, mcp.NotificationResourcesChanged, mcp.NotificationResourceUpdated:
		uri, _ := rawjson.String(rawjson.Lookup(n.Params, "uri"))
		p.printChange(client.Change{Method: n.Method, URI: uri, Params: n.Params})
	}
}

// changeLine is the JSON form of a change.
type changeLine struct {
	Time   time.Time       `json:"time"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Gap    bool            `json:"gap,omitempty"`
}

// writeChange writes a change as text, or as a line of JSON.
func writeChange(f *factory.Factory, c client.Change) {
	now := time.Now()
	if f.JSON {
		factory.WriteJSONLine(f.Stdout, changeLine{now, c.Method, c.Params, c.Gap})
		return
	}
	fmt.Fprintf(f.Stdout, "%s %s\n", f.Stdout.Dim(now.Format(time.TimeOnly)), formatChange(c))
}

// formatChange describes a change in a few words.
func formatChange(c client.Change) string {
	switch {
	case c.Gap:
		return "gap: changes may have been missed"
	case c.Method == mcp.NotificationToolsChanged:
		return "tools changed"
	case c.Method == mcp.NotificationPromptsChanged:
		return "prompts changed"
	case c.Method == mcp.NotificationResourcesChanged:
		return "resources changed"
	case c.Method == mcp.NotificationResourceUpdated:
		return "updated " + term.Line(c.URI)
	}
	return term.Line(c.Method)
}

// warnUnwatched warns of resources for which the server may never announce a change: it did not
// grant the subscription, or it granted it for a resource that it does not list.
func warnUnwatched(ctx context.Context, f *factory.Factory, c *client.Client, wanted, granted []string) {
	var agreed []string
	for _, uri := range wanted {
		if !slices.Contains(granted, uri) {
			f.Warn("the server does not announce changes of %s", uri)
			continue
		}
		agreed = append(agreed, uri)
	}
	for _, uri := range findUnlisted(ctx, c, agreed) {
		f.Warn("the server does not list the resource %s and may never announce its changes", uri)
	}
}

// findUnlisted returns the URIs that match neither a resource nor a template of the server. It
// returns nil if the list of resources cannot be read.
func findUnlisted(ctx context.Context, c *client.Client, uris []string) []string {
	if len(uris) == 0 {
		return nil
	}
	for page, err := range connect.ListTemplates.Pages(ctx, c) {
		if err != nil {
			break // many servers do not support templates
		}
		for it := rawjson.Array(rawjson.Lookup(page, connect.ListTemplates.Member)); it.Next(); {
			template, _ := rawjson.String(rawjson.Lookup(it.Value, "uriTemplate"))
			begin, _, _ := strings.Cut(template, "{")
			uris = slices.DeleteFunc(uris, func(uri string) bool { return strings.HasPrefix(uri, begin) })
		}
	}
	for page, err := range connect.ListResources.Pages(ctx, c) {
		if err != nil {
			return nil
		}
		for it := rawjson.Array(rawjson.Lookup(page, connect.ListResources.Member)); it.Next(); {
			listed, _ := rawjson.String(rawjson.Lookup(it.Value, "uri"))
			uris = slices.DeleteFunc(uris, func(uri string) bool { return uri == listed })
		}
	}
	return uris
}

// reportState warns of a lost or restored connection, and sends the error of a failed one.
func reportState(f *factory.Factory, s client.State, failed chan<- error) {
	switch {
	case s.Status == client.Failed && s.Err != nil:
		failed <- s.Err
	case s.Status == client.Lost:
		f.Warn("%v", s)
	case s.Status == client.Ready && s.Attempt > 0:
		f.Warn("the connection is restored")
	}
}
