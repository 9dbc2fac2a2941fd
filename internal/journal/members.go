package journal

import (
	"github.com/dowel-mcp/dowel/internal/callmark"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// requestMembers are the members of params that the journal reads, as raw JSON.
type requestMembers struct {
	name         []byte // name, uri or taskId
	taskID       []byte
	requestState []byte
	clientInfo   []byte
	version      []byte
	token        []byte // of progress
	mark         []byte // of a call
}

// readRequest reads params once.
func readRequest(params []byte) (m requestMembers) {
	for it := rawjson.Object(params); it.Next(); {
		switch string(it.Key) {
		case "name", "uri":
			m.name = it.Value
		case "taskId":
			m.name, m.taskID = it.Value, it.Value
		case "requestState":
			m.requestState = it.Value
		case "clientInfo": // of initialize
			m.clientInfo = it.Value
		case "_meta":
			m.readMeta(it.Value)
		}
	}
	return m
}

func (m *requestMembers) readMeta(meta []byte) {
	for it := rawjson.Object(meta); it.Next(); {
		switch string(it.Key) {
		case "progressToken":
			m.token = it.Value
		case mcpwire.MetaProtocolVersion:
			m.version = it.Value
		case metaClientInfo:
			m.clientInfo = it.Value
		case callmark.Meta:
			m.mark = it.Value
		}
	}
}

const metaClientInfo = "io.modelcontextprotocol/clientInfo"

// resultMembers are the members of a result that the journal reads.
type resultMembers struct {
	isError         bool
	inputRequired   bool
	task            []byte // the id of a task that the server works on, as raw JSON
	state           []byte
	questions       int
	status          []byte // of a task
	taskResult      []byte // of a task that is completed
	taskError       []byte // of a task that has failed
	protocolVersion []byte
}

// readResult reads a result once. Revision 2025-11-25 has the id of a task in a member task, the
// extension of modern revisions in the result itself.
func readResult(result []byte) (m resultMembers) {
	isTask, id := false, []byte(nil)
	for it := rawjson.Object(result); it.Next(); {
		switch string(it.Key) {
		case "isError":
			m.isError = string(it.Value) == "true"
		case "resultType":
			m.inputRequired = rawjson.Is(it.Value, string(mcp.ResultInputRequired))
			isTask = rawjson.Is(it.Value, "task")
		case "task":
			if inner := rawjson.Lookup(it.Value, "taskId"); inner != nil {
				isTask, id = true, inner
			}
		case "taskId":
			id = it.Value
		case "requestState":
			m.state = it.Value
		case "inputRequests":
			for in := rawjson.Object(it.Value); in.Next(); {
				m.questions++
			}
		case "status":
			m.status = it.Value
		case "result":
			m.taskResult = it.Value
		case "error":
			m.taskError = it.Value
		case "protocolVersion":
			m.protocolVersion = it.Value
		}
	}
	if isTask {
		m.task = id
	}
	return m
}

// taskOutcome returns the status of an operation from the response to a request about its task.
// It is Pending if the response does not say that the task has ended.
func (m *resultMembers) taskOutcome(method string, e *jsonrpc.Error) Status {
	switch {
	case e != nil || rawjson.Is(m.status, "failed"):
		return Failed
	case rawjson.Is(m.status, "cancelled"):
		return Cancelled
	case string(rawjson.Lookup(m.taskResult, "isError")) == "true":
		return ToolError
	case rawjson.Is(m.status, "completed"):
		return OK
	case method == methodTaskResult:
		return m.outcome(nil)
	}
	return Pending
}

// methodTaskResult gets the result of a task in revision 2025-11-25.
const methodTaskResult = "tasks/result"

// outcome returns the status that a response tells.
func (m *resultMembers) outcome(e *jsonrpc.Error) Status {
	switch {
	case e != nil:
		return Failed
	case m.inputRequired:
		return Asked
	case m.isError:
		return ToolError
	}
	return OK
}
