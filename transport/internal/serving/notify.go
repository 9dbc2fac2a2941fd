package serving

import (
	"context"
	"fmt"
	"strconv"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// This file guards the notifications that a handler sends: the rules hold for every handler,
// including raw ones and gateways.

// Notify implements [mcp.Peer]. It drops progress that does not rise and log messages that the
// client has not asked for.
func (c *call) Notify(_ context.Context, n mcp.Notification) error {
	if err := checkNotification(n); err != nil {
		return err
	}
	params := mcpwire.AdaptParams(c.req.Revision, n.Method, n.Params)
	if n.Method == mcp.NotificationMessage && mcpwire.HasNamedLogs(c.ctx) {
		params = mcpwire.NameRequest(params, c.id.Append(nil))
	}
	return c.sendFrame(func(dst []byte) []byte {
		if n.Method == mcp.NotificationProgress && !c.progressRises(params) || n.Method == mcp.NotificationMessage && !c.wantsLog() {
			return nil
		}
		return jsonrpc.AppendNotification(dst, n.Method, params)
	})
}

// checkNotification returns an error if a handler must not send n, or if the params are not a JSON
// object. Only the edge sends notifications/cancelled, when a subscription or a question ends.
func checkNotification(n mcp.Notification) error {
	if n.Method == mcpwire.NotificationCancelled {
		return fmt.Errorf("a server must not send %s: return an error from the handler instead", n.Method)
	}
	if n.Params == nil {
		return nil
	}
	if err := rawjson.CheckObject(n.Params, func([]byte, []byte) {}); err != nil {
		return fmt.Errorf("the params of %s: %w", n.Method, err)
	}
	return nil
}

// wantsLog reports whether the client has asked for log messages. A legacy client always gets them:
// its session has a level.
func (c *call) wantsLog() bool { return c.req.LogLevel != "" || !c.req.Revision.Modern() }

// progressRises reports whether progress is higher than the last reported value. A legacy client
// sees one call even if the handler runs several times. The caller holds c.mu.
func (c *call) progressRises(params []byte) bool {
	now, err := strconv.ParseFloat(string(rawjson.Lookup(params, "progress")), 64)
	if err != nil || c.hasProgress && now <= c.highestProgress {
		return false
	}
	c.hasProgress, c.highestProgress = true, now
	return true
}

// checkExtensionType returns an error unless the client has declared an extension with the result
// type, which is not one of the core's.
func (c *call) checkExtensionType(t mcp.ResultType) *mcp.Error {
	missing, ok := mcpwire.Vocabulary(c.edge.opts.Extensions).MissingExtension(t, c.req.Capabilities())
	switch {
	case ok:
		return nil
	case len(missing.Extensions) > 0:
		return mcpwire.MissingCapability(&mcp.CapabilityError{Required: missing})
	}
	return mcp.Errorf(jsonrpc.CodeInternal, "the result is of type %q, which no extension of the server has", t)
}
