package mcpwire

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// Names of the extension io.modelcontextprotocol/tasks (github.com/modelcontextprotocol/ext-tasks).
const (
	ExtensionTasks = "io.modelcontextprotocol/tasks"

	MethodGetTask    = "tasks/get"
	MethodUpdateTask = "tasks/update"
	MethodCancelTask = "tasks/cancel"
	NotificationTask = "notifications/tasks"

	// ListenTasks is the field of a listen filter that lists the ids of tasks.
	ListenTasks = "taskIds"

	ResultTask mcp.ResultType = "task"
)

// Names of the experimental tasks of revision 2025-11-25, which has tasks/get and tasks/cancel too.
const (
	MethodTaskResult       = "tasks/result"
	MethodListTasks        = "tasks/list"
	NotificationTaskStatus = "notifications/tasks/status"

	// MetaRelatedTask is the key of _meta that names the task to which a message belongs.
	MetaRelatedTask = "io.modelcontextprotocol/related-task"
)

// TasksExtension returns the extension of tasks.
func TasksExtension() mcp.Extension {
	return mcp.Extension{
		ID: ExtensionTasks, ResultTypes: []mcp.ResultType{ResultTask}, ListenFilters: map[string]string{ListenTasks: NotificationTask},
		NameFields: map[string]string{MethodGetTask: "taskId", MethodUpdateTask: "taskId", MethodCancelTask: "taskId"},
	}
}

// WithTasks adds the extension of tasks, unless the program defines it itself.
func WithTasks(extensions []mcp.Extension) []mcp.Extension {
	if DefinesTasks(extensions) {
		return extensions
	}
	return append(slices.Clip(extensions), TasksExtension())
}

// DefinesTasks reports whether an extension uses names of the extension of tasks.
func DefinesTasks(extensions []mcp.Extension) bool {
	return slices.ContainsFunc(extensions, func(e mcp.Extension) bool {
		_, filters := e.ListenFilters[ListenTasks]
		return e.ID == ExtensionTasks || filters || slices.Contains(e.ResultTypes, ResultTask)
	})
}

// NeedsTasks returns the capabilities that a client must declare for tasks.
func NeedsTasks() mcp.ClientCapabilities {
	return mcp.ClientCapabilities{Extensions: Vocabulary{TasksExtension()}.Declare()}
}

// Task is a task as tasks/get and notifications/tasks show it. InputRequests, Result and Error
// belong to one status each; a result of type task has none of them.
type Task struct {
	TaskID         string                      `json:"taskId"`
	Status         string                      `json:"status"`
	StatusMessage  string                      `json:"statusMessage,omitzero"`
	CreatedAt      string                      `json:"createdAt"`
	LastUpdatedAt  string                      `json:"lastUpdatedAt"`
	TTLMs          *int64                      `json:"ttlMs"` // nil means unlimited
	PollIntervalMs int64                       `json:"pollIntervalMs,omitzero"`
	InputRequests  map[string]mcp.InputRequest `json:"inputRequests,omitempty"`
	Result         json.RawMessage             `json:"result,omitempty"`
	Error          json.RawMessage             `json:"error,omitempty"`
}

// The states of a task. It does not leave the last three.
const (
	TaskWorking       = "working"
	TaskInputRequired = "input_required"
	TaskCompleted     = "completed"
	TaskFailed        = "failed"
	TaskCancelled     = "cancelled"
)

// TaskTimeFormat is the form of the times of a task.
const TaskTimeFormat = "2006-01-02T15:04:05.000Z07:00"

// HasEnded reports whether the task will not change any more.
func (t *Task) HasEnded() bool {
	return t.Status == TaskCompleted || t.Status == TaskFailed || t.Status == TaskCancelled
}

// TaskParams returns the params of a request about a task. answers may be nil.
func TaskParams(id string, answers json.RawMessage) json.RawMessage {
	params := rawjson.AppendString([]byte(`{"taskId":`), id)
	if answers != nil {
		params = append(append(params, `,"inputResponses":`...), answers...)
	}
	return append(params, '}')
}

// EncodeResult returns the JSON of a result that has its raw form or its value.
func EncodeResult(res *mcp.Result) (json.RawMessage, error) {
	if res.Raw != nil {
		return res.Raw, nil
	}
	return mcp.Encode(res.Value)
}

// TaskError returns the error of a failed task.
func TaskError(t *Task) error {
	var e struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if err := mcp.Decode(t.Error, &e); err != nil {
		return fmt.Errorf("the task failed, and its error cannot be read: %w", err)
	}
	return &mcp.Error{Code: e.Code, Message: e.Message, Data: e.Data}
}

// EncodeTaskError encodes the error of a failed task. Data that is not JSON is left out.
func EncodeTaskError(e *mcp.Error) json.RawMessage {
	shown := struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}{e.Code, e.Message, e.Data}
	raw, err := mcp.Encode(&shown)
	if err != nil {
		shown.Data = nil
		raw, _ = mcp.Encode(&shown)
	}
	return raw
}
