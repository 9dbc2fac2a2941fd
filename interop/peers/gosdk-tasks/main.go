// Command gosdk-tasks uses the tasks of a server with the official Go SDK. The SDK's client has no
// tasks, which the first check makes sure of, so the requests go through its transport as they are.
// It prints one JSON line per check. The server has the tools of node/tasks-server.mjs; PREFIX
// comes before their names.
//
//	gosdk-tasks REVISION URL [PREFIX]
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/interop/peers/report"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const modern = "2026-07-28"

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: gosdk-tasks REVISION URL [PREFIX]")
	}
	p := &peer{revision: os.Args[1]}
	if len(os.Args) > 3 {
		p.prefix = os.Args[3]
	}
	r := report.New(os.Stdout, nil)
	r.Run("the SDK has no tasks", checkNoTasks)
	r.Run("connect", func() (err error) {
		p.wire, err = dial(os.Args[2], p.revision)
		return err
	})
	if p.wire != nil {
		r.Run("capability", p.checkCapability)
		r.Run("result", p.checkResult)
		r.Run("failure", p.checkFailure)
		r.Run("question", p.checkQuestion)
		r.Run("cancel", p.checkCancel)
		r.Run("unknown task", p.checkUnknown)
		r.Run("replicas", p.wire.checkReplicas)
		r.Run("close", p.wire.close)
	}
	os.Exit(r.Finish())
}

// checkNoTasks returns an error if the SDK has tasks by now: then the checks must use them.
func checkNoTasks() error {
	for m := range reflect.TypeFor[*mcp.ClientSession]().Methods() {
		if strings.Contains(m.Name, "Task") {
			return fmt.Errorf("ClientSession.%s: the SDK has tasks, so use them here", m.Name)
		}
	}
	if _, ok := reflect.TypeFor[mcp.CallToolParams]().FieldByName("Task"); ok {
		return errors.New("CallToolParams.Task: the SDK has tasks, so use them here")
	}
	return nil
}

// peer runs the checks in one revision.
type peer struct {
	wire             *wire
	revision, prefix string
}

// task is a task of either revision.
type task struct {
	TaskID        string                     `json:"taskId"`
	Status        string                     `json:"status"`
	Result        json.RawMessage            `json:"result"`
	InputRequests map[string]json.RawMessage `json:"inputRequests"`
}

type toolResult struct {
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	IsError bool `json:"isError"`
}

func (p *peer) checkCapability() error {
	tools, extension := p.wire.capabilities.Tasks.Requests.Tools.Call, p.wire.capabilities.Extensions[extensionTasks]
	if p.revision == modern && extension == nil || p.revision != modern && tools == nil {
		return fmt.Errorf("the server declares no tasks: %s", p.wire.discovered)
	}
	return nil
}

// begin calls a tool as a task.
func (p *peer) begin(tool string) (*task, error) {
	params := map[string]any{"name": p.prefix + tool, "arguments": map[string]any{}}
	if p.revision != modern {
		params["task"] = map[string]any{}
	}
	raw, err := p.wire.call("tools/call", params)
	if err != nil {
		return nil, err
	}
	var created struct {
		task
		Legacy *task `json:"task"`
	}
	if err := json.Unmarshal(raw, &created); err != nil {
		return nil, err
	}
	if created.Legacy != nil {
		created.task = *created.Legacy
	}
	if created.TaskID == "" {
		return nil, fmt.Errorf("the call of %s made no task: %s", tool, raw)
	}
	return &created.task, nil
}

func (p *peer) get(id string) (*task, error) {
	raw, err := p.wire.call("tasks/get", map[string]any{"taskId": id})
	if err != nil {
		return nil, err
	}
	t := new(task)
	return t, json.Unmarshal(raw, t)
}

// await asks for the state of a task until it has one of the statuses.
func (p *peer) await(id string, statuses ...string) (*task, error) {
	for end := time.Now().Add(report.Limit); ; time.Sleep(20 * time.Millisecond) {
		t, err := p.get(id)
		if err != nil {
			return nil, err
		}
		for _, status := range statuses {
			if t.Status == status {
				return t, nil
			}
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("the task is %s, want %v", t.Status, statuses)
		}
	}
}

// result returns the result of a task that has ended or that asks live.
func (p *peer) result(id string) (*toolResult, error) {
	var raw json.RawMessage
	if p.revision == modern {
		t, err := p.await(id, "completed", "failed")
		if err != nil {
			return nil, err
		}
		raw = t.Result
	} else {
		var err error
		if raw, err = p.wire.call("tasks/result", map[string]any{"taskId": id}); err != nil {
			return nil, err
		}
	}
	out := new(toolResult)
	if err := json.Unmarshal(raw, out); err != nil || len(out.Content) != 1 {
		return nil, fmt.Errorf("the result is %s, %v", raw, err)
	}
	return out, nil
}

func (p *peer) checkResult() error {
	t, err := p.begin("slow")
	if err != nil {
		return err
	}
	if _, err := p.await(t.TaskID, "completed"); err != nil {
		return err
	}
	return p.wantText(t.TaskID, "slow is done", false)
}

func (p *peer) wantText(id, text string, isError bool) error {
	out, err := p.result(id)
	if err == nil && (out.Content[0].Text != text || out.IsError != isError) {
		err = fmt.Errorf("the result is %+v, want %q", *out, text)
	}
	return err
}

func (p *peer) checkFailure() error {
	t, err := p.begin("fails")
	if err != nil {
		return err
	}
	return p.wantText(t.TaskID, "out of paper", true)
}

// checkQuestion answers the question of a task: live in 2025-11-25, and with tasks/update in
// 2026-07-28.
func (p *peer) checkQuestion() error {
	t, err := p.begin("asks")
	if err != nil {
		return err
	}
	t, err = p.await(t.TaskID, "input_required")
	if err != nil {
		return err
	}
	if p.revision == modern {
		answers := map[string]any{}
		for key := range t.InputRequests {
			answers[key] = answer
		}
		if _, err := p.wire.call("tasks/update", map[string]any{"taskId": t.TaskID, "inputResponses": answers}); err != nil {
			return err
		}
	}
	return p.wantText(t.TaskID, "Hello, Ada", false)
}

func (p *peer) checkCancel() error {
	t, err := p.begin("hangs")
	if err != nil {
		return err
	}
	if _, err := p.wire.call("tasks/cancel", map[string]any{"taskId": t.TaskID}); err != nil {
		return err
	}
	_, err = p.await(t.TaskID, "cancelled")
	return err
}

func (p *peer) checkUnknown() error {
	if t, err := p.get("unknown"); err == nil {
		return fmt.Errorf("there is a task %+v", t)
	} else if !strings.Contains(err.Error(), "task") {
		return err
	}
	return nil
}
