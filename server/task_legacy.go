package server

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/mcp"
)

// This file has the parts of the experimental tasks of 2025-11-25 that the extension of tasks
// lacks. The transport translates all others.

// listsTasks reports whether the sender of a request may list its tasks: it must be known.
func (s *Server) listsTasks(req *mcp.Request) bool {
	return s.offersTasks(req) && isLegacy(req) && req.Principal.ID != ""
}

// taskSettings returns the settings of the extension of tasks. For a client of 2025-11-25, they are
// members of the capability tasks.
func (s *Server) taskSettings(req *mcp.Request) json.RawMessage {
	if s.listsTasks(req) {
		return json.RawMessage(`{"list":{}}`)
	}
	return json.RawMessage("{}")
}

// showsExecution reports whether tools are listed with the member execution, which only 2025-11-25
// has.
func (s *Server) showsExecution(req *mcp.Request) bool {
	return req.Revision == mcp.Revision20251125 && s.offersTasks(req)
}

// withExecution returns an encoded tool with the member execution, if the tool has tasks.
func withExecution(item Item) json.RawMessage {
	switch item.entry.(*registeredTool).task.Mode {
	case TaskMay:
		return rawjson.Set(item.encoded, "execution", []byte(`{"taskSupport":"optional"}`))
	case TaskMust:
		return rawjson.Set(item.encoded, "execution", []byte(`{"taskSupport":"required"}`))
	}
	return item.encoded
}

// listTasks serves tasks/list: the tasks of the principal, the oldest first. It leaves out the
// tasks of tools for which the request's token lacks scopes.
func (s *Server) listTasks(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if err := s.roundLimiter.takeToken(req.Principal); err != nil {
		return nil, mcp.Errorf(codeInternal, "%v", err)
	}
	after, err := s.openTaskCursor(req)
	if err != nil {
		return nil, err
	}
	records, err := s.tasks.store.List(ctx, req.Principal.ID)
	if err != nil {
		return nil, s.taskLookupError(ctx, err)
	}
	list := struct {
		Tasks      []*mcpwire.LegacyTask `json:"tasks"`
		NextCursor string                `json:"nextCursor,omitzero"`
	}{Tasks: []*mcpwire.LegacyTask{}}
	records = slices.DeleteFunc(records, func(r *tasks.Record) bool {
		return taskPosition(r) <= after || !s.showsTask(ctx, req.Principal, r) || !s.maySeeTask(ctx, req, r)
	})
	for i, r := range records {
		if i == s.opts.PageSize {
			list.NextCursor = s.cursors.Seal([]byte(taskPosition(records[i-1])), s.cursorBound(req))
			break
		}
		list.Tasks = append(list.Tasks, mcpwire.DescribeTaskFully(r).Legacy())
	}
	return s.newResult(&list), nil
}

// maySeeTask reports whether the token of a request over HTTP has the scopes of a task's call.
func (s *Server) maySeeTask(ctx context.Context, req *mcp.Request, r *tasks.Record) bool {
	return req.Header == nil || !s.catalog.hasScopes.Load() || req.Principal.HasScopes(s.toolScopes(ctx, req.Principal, r.Params)...)
}

// taskPosition returns the place of a task in lists. Positions are in the order of the tasks.
func taskPosition(r *tasks.Record) string {
	return r.Created.UTC().Format("2006-01-02T15:04:05.000000000") + r.ID
}

// openTaskCursor returns the position after which a page of tasks begins.
func (s *Server) openTaskCursor(req *mcp.Request) (string, error) {
	raw := rawjson.Lookup(req.Params, "cursor")
	if raw == nil || rawjson.IsNull(raw) {
		return "", nil
	}
	sealed, _ := rawjson.String(raw)
	plain, err := s.cursors.Open(sealed, s.cursorBound(req))
	if err != nil {
		return "", mcp.InvalidParams("invalid cursor: begin the list anew")
	}
	return string(plain), nil
}
