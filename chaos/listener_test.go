//go:build linux

package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/chaos/history"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// A taskListener is a client of 2026-07-28 that never asks for the state of its task. It learns the
// end only from a subscription, which it opens again when its connection is lost.
type taskListener struct {
	*cluster
	name, url, job, kind string
	task                 *client.Task
	answering            sync.WaitGroup
	isAnswered           map[string]bool // the questions, by key
}

// listenLimit bounds the time from the creation of a task to the end that its listener hears.
const listenLimit = 2 * opLimit

// await listens to the task until its end, answers its questions, and may cancel it.
func (l *taskListener) await(ctx context.Context, fate string, random *rand.Rand) {
	ctx, cancel := context.WithTimeout(ctx, listenLimit)
	o := l.h.Begin(&history.Op{Client: l.name, Kind: history.Await, Key: l.task.ID(), Job: l.job, Status: fate, Got: l.kind})
	var canceller sync.WaitGroup
	defer canceller.Wait()
	defer l.answering.Wait()
	defer cancel()
	if l.kind == "waits" || random.IntN(8) == 0 {
		after := time.Duration(random.Int64N(int64(6 * time.Second)))
		canceller.Go(func() { l.cancelAfter(ctx, after) })
	}
	for ctx.Err() == nil {
		if hasEnded, _ := l.listen(ctx); hasEnded {
			l.h.End(o, history.OK)
			return
		}
		_ = wait(ctx, 50*time.Millisecond)
	}
	l.h.End(o, history.Hung)
}

// cancelAfter cancels the task. A listener hears of no error, so it tries again.
func (l *taskListener) cancelAfter(ctx context.Context, after time.Duration) {
	for wait(ctx, after) == nil {
		err := l.do(context.WithoutCancel(ctx), &history.Op{Client: l.name, Kind: history.Cancel, Key: l.task.ID(), Job: l.job}, func(ctx context.Context, _ *history.Op) error { return l.task.Cancel(ctx) })
		if err == nil || isUnknownTask(err) {
			return
		}
		after = 100 * time.Millisecond
	}
}

// listen opens one subscription and reads it until the end of the task or of the connection.
func (l *taskListener) listen(ctx context.Context) (hasEnded bool, err error) {
	mark := newJob("listen")
	o := l.h.Begin(&history.Op{Client: l.name, Kind: history.Follow, Key: l.task.ID()})
	outcome := history.Failed
	defer func() {
		o.Owner = l.ownerOf(mark)
		if err != nil {
			o.Err = err.Error()
		}
		l.h.End(o, outcome)
	}()
	resp, err := l.subscribe(withMark(ctx, mark))
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return false, fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	for lines := bufio.NewReader(resp.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return false, err // outcome stays OK after the acknowledgement
		}
		data, isData := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data:")
		if !isData || strings.TrimSpace(data) == "" {
			continue
		}
		switch hasEnded, err := l.take(ctx, o, []byte(data)); {
		case errors.Is(err, errMissing):
			outcome = history.Missing
			return false, err
		case err != nil:
			return false, err
		case hasEnded:
			outcome = history.OK
			return true, nil
		}
		outcome = history.OK
	}
}

// subscribe sends the request of a subscription to the task.
func (l *taskListener) subscribe(ctx context.Context) (*http.Response, error) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":%q,
		"io.modelcontextprotocol/clientInfo":{"name":"chaos","version":"1"},
		"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"extensions":{%q:{}}}},"notifications":{%q:[%q]}}}`,
		mcp.MethodListen, mcp.Revision20260728, mcpwire.ExtensionTasks, mcpwire.ListenTasks, l.task.ID())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = headerOf(ctx, ownToken)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("MCP-Protocol-Version", string(mcp.Revision20260728))
	r.Header.Set("Mcp-Method", mcp.MethodListen)
	own := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return own.Do(r)
}

// take handles a message of a subscription. It returns errMissing if the acknowledgement leaves the
// task out.
func (l *taskListener) take(ctx context.Context, within *history.Op, text []byte) (hasEnded bool, err error) {
	var m struct {
		Method string
		Params json.RawMessage
		Result json.RawMessage
		Error  *mcp.Error
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return false, fmt.Errorf("%w in %s", err, text)
	}
	switch {
	case m.Error != nil:
		return false, m.Error
	case m.Result != nil:
		return false, io.EOF // the server has ended the subscription
	case m.Method == mcp.NotificationAcknowledged:
		if !strings.Contains(string(m.Params), `"`+l.task.ID()+`"`) {
			return false, fmt.Errorf("%w: the acknowledgement leaves the task out: %s", errMissing, m.Params)
		}
	case m.Method == mcpwire.NotificationTask:
		task := new(mcpwire.Task)
		if err := mcp.Decode(m.Params, task); err != nil {
			return false, err
		}
		l.hear(within, task)
		if task.Status == mcpwire.TaskInputRequired {
			l.answer(ctx, task.InputRequests)
		}
		return isFinal(task.Status), nil
	default:
		return false, fmt.Errorf("a subscription to tasks brings %s", text)
	}
	return false, nil
}

// hear records a state that the subscription has told.
func (l *taskListener) hear(within *history.Op, task *mcpwire.Task) {
	o := &history.Op{Client: l.name, Kind: history.Hear, Key: task.TaskID, Job: l.job, Want: wantedResult(l.job, l.kind), Status: task.Status, Within: within}
	o.Updated, _ = l.h.TimeOf(task.LastUpdatedAt)
	switch task.Status {
	case mcpwire.TaskCompleted:
		var result mcp.CallToolResult
		if err := mcp.Decode(task.Result, &result); err != nil {
			o.Err = err.Error()
		}
		o.Got = textOf(&result)
	case mcpwire.TaskFailed:
		o.Got = mcpwire.TaskError(task).Error()
	}
	l.h.AddHeard(o)
}

// answer answers the new questions of the task. A listener hears of no error, so it tries again.
func (l *taskListener) answer(ctx context.Context, questions map[string]mcp.InputRequest) {
	fresh := map[string]mcp.InputRequest{}
	for key, q := range questions {
		if !l.isAnswered[key] {
			fresh[key], l.isAnswered[key] = q, true
		}
	}
	if len(fresh) == 0 {
		return
	}
	l.answering.Go(func() {
		// The end of the listener is no end of an operation.
		for ctx.Err() == nil {
			if err := l.answerTask(context.WithoutCancel(ctx), l.task, l.name, l.job, fresh); err == nil || isUnknownTask(err) {
				return
			}
			_ = wait(ctx, 50*time.Millisecond)
		}
	})
}
