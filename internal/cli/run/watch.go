package run

import (
	"context"
	"errors"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/mcp"
)

// runAtChanges runs the task now, and again after each change of the resources of --watch, until
// ctx ends. Each run is a conversation of its own. Changes during a run lead to one more run. A run
// that fails does not end the watch. The limits of tokens and cost are for all runs together.
func (t *task) runAtChanges(ctx context.Context) error {
	references, err := t.watchedResources(ctx)
	if err != nil {
		return err
	}
	changed, ended := make(chan struct{}, 1), make(chan error, 1)
	filter := mcp.SubscriptionFilter{}
	for _, r := range references {
		filter.ResourceSubscriptions = append(filter.ResourceSubscriptions, wirename.ResourceURI(r.Server, r.URI))
	}
	watch, err := t.runtime.Toolbox.Client().OnChange(ctx, filter, func(_ client.Change, err error) {
		if err != nil {
			ended <- err
			return
		}
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return watchError{err}
	}
	defer watch.Close()
	if missing := len(references) - len(watch.Acknowledged().ResourceSubscriptions); missing > 0 {
		return exit.Usagef("--watch: the server does not report changes of %d of the %d resources", missing, len(references))
	}
	for {
		err := t.runOnce(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.As(err, new(errSpent)) {
			return err
		}
		if err != nil {
			t.Warn("%v", err)
		}
		if !t.JSON {
			t.Notice("Waiting for a change; Ctrl-C ends dowel.")
		}
		if err := t.awaitChange(ctx, changed, ended); err != nil {
			return err
		}
	}
}

// awaitChange waits for a change, and prepares the next run. A resource or prompt that cannot be
// read waits for the next change.
func (t *task) awaitChange(ctx context.Context, changed <-chan struct{}, ended <-chan error) error {
	for {
		select {
		case <-changed:
		case err := <-ended:
			return watchError{err}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		t.sessions.startConversation(ctx, t.runtime, t.results)
		err := t.input.assembleContent(ctx, t.Factory, t.runtime)
		if err == nil || errors.As(err, new(exit.UsageError)) || ctx.Err() != nil {
			return err
		}
		t.Warn("%v", err)
	}
}

// watchError is the error of the watch. Its text leaves out the name of the connection, which is
// dowel itself, and the method.
type watchError struct{ err error }

// Error implements [error].
func (e watchError) Error() string {
	err := e.err
	if call, ok := errors.AsType[*client.CallError](err); ok {
		err = call.Err
	}
	return "--watch: " + err.Error()
}

// Unwrap returns the whole error, which has the exit code.
func (e watchError) Unwrap() error { return e.err }

// watchedResources returns the resources of --watch.
func (t *task) watchedResources(ctx context.Context) (all []agentcmd.Reference, err error) {
	for _, word := range t.opts.watch {
		ref, ok, err := t.runtime.FindReference(ctx, agentcmd.Mention{Quoted: word})
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, exit.Usagef("--watch %s: write SERVER:URI, with one of your servers; dowel resources lists the URIs", word)
		}
		all = append(all, ref)
	}
	return all, nil
}
