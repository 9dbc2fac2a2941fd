package mcpwire

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// LegacyTask is a task in the form of revision 2025-11-25.
type LegacyTask struct {
	TaskID        string `json:"taskId"`
	Status        string `json:"status"`
	StatusMessage string `json:"statusMessage,omitzero"`
	CreatedAt     string `json:"createdAt"`
	LastUpdatedAt string `json:"lastUpdatedAt"`
	TTL           *int64 `json:"ttl"` // in milliseconds; nil means unlimited
	PollInterval  int64  `json:"pollInterval,omitzero"`
}

// Legacy returns the task in the form of revision 2025-11-25, in which a task whose tool failed has
// failed too.
func (t *Task) Legacy() *LegacyTask {
	l := &LegacyTask{t.TaskID, t.Status, t.StatusMessage, t.CreatedAt, t.LastUpdatedAt, t.TTLMs, t.PollIntervalMs}
	if t.Status == TaskCompleted && string(rawjson.Lookup(t.Result, "isError")) == "true" {
		l.Status = TaskFailed
		var result mcp.CallToolResult
		if l.StatusMessage == "" && mcp.Decode(t.Result, &result) == nil && len(result.Content) > 0 {
			l.StatusMessage = result.Content[0].Text
		}
	}
	return l
}

// Modern returns the task in the form of the extension of tasks, without the members that belong to
// its status.
func (l *LegacyTask) Modern() *Task {
	return &Task{
		TaskID: l.TaskID, Status: l.Status, StatusMessage: l.StatusMessage, CreatedAt: l.CreatedAt, LastUpdatedAt: l.LastUpdatedAt,
		TTLMs: l.TTL, PollIntervalMs: l.PollInterval,
	}
}

// WithRelatedTask returns a copy of a message's params or result that names the task to which the
// message belongs.
func WithRelatedTask(raw json.RawMessage, id string) json.RawMessage {
	related := append(rawjson.AppendString([]byte(`{"taskId":`), id), '}')
	return SetMeta(raw, MetaRelatedTask, related)
}

// WithTasksCapability returns a copy of a client's capabilities that declares the extension of
// tasks; WithoutTasksCapability returns one without the extension and without the tasks of revision
// 2025-11-25. Both return capabilities itself if nothing changes.
func WithTasksCapability(capabilities json.RawMessage) json.RawMessage {
	extensions := rawjson.Lookup(capabilities, "extensions")
	if rawjson.Lookup(extensions, ExtensionTasks) != nil {
		return capabilities
	}
	return rawjson.Set(capabilities, "extensions", rawjson.Set(extensions, ExtensionTasks, []byte("{}")))
}

// WithoutTasksCapability is the reverse of [WithTasksCapability].
func WithoutTasksCapability(capabilities json.RawMessage) json.RawMessage {
	if rawjson.Lookup(capabilities, "tasks") != nil {
		capabilities = rawjson.Set(capabilities, "tasks", nil)
	}
	extensions := rawjson.Lookup(capabilities, "extensions")
	if rawjson.Lookup(extensions, ExtensionTasks) == nil {
		return capabilities
	}
	if extensions = rawjson.Set(extensions, ExtensionTasks, nil); string(extensions) == "{}" {
		extensions = nil
	}
	return rawjson.Set(capabilities, "extensions", extensions)
}

// RelatedTask returns the id of the task to which a message belongs, or "".
func RelatedTask(params json.RawMessage) string {
	id, _ := rawjson.String(rawjson.Lookup(rawjson.Lookup(rawjson.Lookup(params, "_meta"), MetaRelatedTask), "taskId"))
	return id
}
