package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Tasks (extension io.modelcontextprotocol/tasks) of upstreams of 2026-07-28 are shown to clients
// of 2026-07-28. The gateway keeps nothing of a task: the id that the client gets is the upstream,
// the tool and the upstream's id, sealed for the client's principal. Any replica with the same keys
// can serve it.

// sealedTask is the content of a task's id.
type sealedTask struct {
	Upstream string    `json:"u"`
	Tool     string    `json:"t"` // the upstream's name of it
	ID       string    `json:"i"` // the upstream's id
	Created  time.Time `json:"c,omitzero"`
}

// Extensions returns the extensions that the gateway understands. Transports use them, as
// [mcp.Handler] describes.
func (c *core) Extensions() []mcp.Extension { return []mcp.Extension{mcpwire.TasksExtension()} }

// mayHaveTasks reports whether the revision of a request has tasks. An empty revision is a caller
// within the process. Transports translate the tasks of 2025-11-25.
func mayHaveTasks(req *mcp.Request) bool {
	return req.Revision == "" || req.Revision.Modern() || req.Revision == mcp.Revision20251125
}

// declaresTasks reports whether a request declares the extension.
func declaresTasks(req *mcp.Request) bool {
	return rawjson.Lookup(rawjson.Lookup(req.ClientCapabilities, "extensions"), mcpwire.ExtensionTasks) != nil
}

// mayGetTask reports whether a request may be answered with a task.
func mayGetTask(req *mcp.Request) bool {
	return req.Method == mcp.MethodCallTool && mayHaveTasks(req) && declaresTasks(req)
}

// needsTask reports whether a modern upstream has refused a call because it makes a task of it,
// which the client cannot have.
func needsTask(u *hub.Upstream, req *mcp.Request, err error) bool {
	if req.Method != mcp.MethodCallTool || !hasTasks(u) {
		return false
	}
	lacks, ok := errors.AsType[*mcp.CapabilityError](err)
	return ok && len(lacks.Required.Extensions) == 1 && lacks.Required.Extensions[mcpwire.ExtensionTasks] != nil
}

// asksForTask reports whether a client of 2025-11-25 asks for a task.
func asksForTask(req *mcp.Request) bool {
	return req.Revision == mcp.Revision20251125 && mayGetTask(req)
}

// offersTask reports whether clients of 2025-11-25 may call a tool as a task. They need not: the
// gateway waits for the tasks of all others.
func offersTask(item *catalogItem) bool {
	if item.Upstream.Server().Revision.Modern() {
		return hasTasks(item.Upstream)
	}
	return hasTasks(item.Upstream) && (item.TaskSupport == "optional" || item.TaskSupport == "required")
}

// checkTasksDeclared returns an error unless the client has declared the extension with the
// request.
func checkTasksDeclared(req *mcp.Request) error {
	if declaresTasks(req) {
		return nil
	}
	return &mcp.CapabilityError{Required: mcpwire.NeedsTasks()}
}

// shareTask replaces the id in a result that is a task of the upstream. A relay keeps the id: the
// other gateway has sealed it, and its client may use it with another relay later.
func (g *Gateway) shareTask(u *hub.Upstream, req *mcp.Request, tool string, res *mcp.Result) (*mcp.Result, error) {
	if g.relays {
		return res, nil
	}
	id, ok := rawjson.String(rawjson.Lookup(res.Raw, "taskId"))
	if !ok {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "the server %s has answered with a task without an id", u.Name())
	}
	created, _ := rawjson.String(rawjson.Lookup(res.Raw, "createdAt"))
	at, err := time.Parse(time.RFC3339, created)
	if err != nil {
		at = time.Now()
	}
	plain, err := mcp.Encode(&sealedTask{u.Name(), tool, id, at.UTC().Truncate(time.Millisecond)})
	if err != nil {
		return nil, err
	}
	res.Raw = renameMember(res.Raw, "taskId", id, g.tasks.Seal(plain, []byte(req.Principal.ID)))
	return res, nil
}

// openTask returns the content of a task's id. It returns an error if the id is not one of this
// gateway's for the principal, or the gateway does not show the upstream.
func (g *Gateway) openTask(p mcp.Principal, id string) (t sealedTask, err error) {
	if t, err = g.readTaskID(p, id); err != nil || !g.showsUpstream(t.Upstream) {
		return t, errUnknownTask
	}
	return t, nil
}

var errUnknownTask = mcp.InvalidParams("there is no task with this id, or it has expired")

// readTaskID returns the content of a task's id.
func (g *Gateway) readTaskID(p mcp.Principal, id string) (t sealedTask, err error) {
	if g.relays {
		return sealedTask{Upstream: g.upstreamName, ID: id}, nil
	}
	plain, err := g.tasks.Open(id, []byte(p.ID))
	if err == nil {
		err = mcp.Decode(plain, &t)
	}
	return t, err
}

// serveTask answers tasks/get, tasks/update and tasks/cancel.
func (g *Gateway) serveTask(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if err := checkTasksDeclared(req); err != nil {
		return nil, err
	}
	id, err := requiredString(req, "taskId")
	if err != nil {
		return nil, err
	}
	res, loading, isKept := g.serveKeptTask(ctx, req, id)
	if isKept {
		return res, loading
	}
	t, err := g.openTask(req.Principal, id)
	if err != nil {
		return nil, cmp.Or(loading, err)
	}
	if res, err, isOwned := g.serveOwnedTask(ctx, req, t, id); isOwned || err != nil {
		return res, err
	}
	audit.SetTarget(ctx, audit.Target{Server: t.Upstream, Name: t.Tool})
	if err := g.checkScopes(ctx, t.Upstream, req); err != nil {
		return nil, err
	}
	return g.serveSealed(ctx, req, t, id)
}

// serveKeptTask answers a request about a task of the gateway's own, of this process, another
// replica or an earlier process. isKept is false if there is none with this id, or err says why
// that is not known.
func (g *Gateway) serveKeptTask(ctx context.Context, req *mcp.Request, id string) (res *mcp.Result, err error, isKept bool) {
	if t := g.hosted.findTask(req.Principal.ID, id); t != nil && g.showsUpstream(t.bridge.upstream.Name()) {
		audit.SetTarget(ctx, audit.Target{Server: t.bridge.upstream.Name(), Name: t.tool})
		if err = g.checkScopes(ctx, t.bridge.upstream.Name(), req); err == nil {
			res, err = g.serveHosted(ctx, req, t)
		}
		return res, err, true
	}
	r, err := g.hosted.findRecord(ctx, req.Principal.ID, id)
	switch {
	case r == nil || !g.showsUpstream(storedUpstream(r)):
		return nil, err, false
	case !r.Status.IsTerminal():
		res, err = g.serveRemote(ctx, req, r)
	default:
		res, err = g.serveStored(ctx, req, r)
	}
	return res, err, true
}

// serveSealed answers a request about the task of an upstream. A task that has ended there keeps
// its end when its tool is withdrawn.
func (g *Gateway) serveSealed(ctx context.Context, req *mcp.Request, t sealedTask, id string) (*mcp.Result, error) {
	u := g.hub.Upstream(t.Upstream)
	failed := g.failed.findTask(id)
	if failed == nil && (u == nil || u.State().Status.Held() || req.Method == mcpwire.MethodUpdateTask) {
		failed = g.failWithdrawn(ctx, req, t, id)
	}
	if failed != nil {
		return showFailed(req, failed)
	}
	if u == nil {
		return nil, errUnknownTask
	}
	resp, err := u.RoundTrip(ctx, callerOf(req), upstreamRequest(req, renameMember(req.Params, "taskId", id, t.ID), nil))
	if why := describeFailure(ctx, u, err); why != "" {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "%s", why)
	}
	res, err := clientResult(resp, err)
	if why := lostReason(u, t, err); why != "" && req.Method == mcpwire.MethodGetTask {
		return showFailed(req, g.keepFailed(req.Principal.ID, t, id, why))
	}
	if err != nil || req.Method != mcpwire.MethodGetTask {
		return res, err
	}
	if !hasEnded(res.Raw) {
		if failed := g.failWithdrawn(ctx, req, t, id); failed != nil {
			return showFailed(req, failed)
		}
	}
	res.Raw = g.showTask(u, res.Raw, id)
	return res, nil
}

// showFailed answers a request about a task that has failed.
func showFailed(req *mcp.Request, failed *mcpwire.Task) (*mcp.Result, error) {
	if req.Method != mcpwire.MethodGetTask {
		return &mcp.Result{}, nil
	}
	return &mcp.Result{Value: failed}, nil
}

// hasEnded reports whether the state of a task is one that it does not leave.
func hasEnded(task json.RawMessage) bool {
	status, _ := rawjson.String(rawjson.Lookup(task, "status"))
	return (&mcpwire.Task{Status: status}).HasEnded()
}

// showTask returns the state of an upstream's task as the client may see it: under the client's id,
// with questions that name the upstream, and with links under which the client can read resources.
func (g *Gateway) showTask(u *hub.Upstream, task json.RawMessage, id string) json.RawMessage {
	own, _ := rawjson.String(rawjson.Lookup(task, "taskId"))
	task = renameMember(task, "taskId", own, id)
	if !g.relays {
		task = nameAsker(u.Name(), &mcp.Result{Raw: task}).Raw
	}
	return mapMember(task, "result", func(result json.RawMessage) json.RawMessage {
		shown, _ := g.rewriteLinks(&mcp.Result{Raw: result}, nil, u)
		return shown.Raw
	})
}
