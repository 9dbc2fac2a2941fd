package journal_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/journal"
)

// All polls of a task are one operation with the call that has made it, in both forms of tasks. An
// operation ends when a response says so, not with the receipt of a cancellation or an update.
func TestOneOperationForATask(t *testing.T) {
	t.Parallel()
	const (
		legacyTask = `{"task":{"taskId":"t1","status":"working"}}`
		modernTask = `{"resultType":"task","taskId":"t1","status":"working","ttlMs":null}`
		receipt    = `{"resultType":"complete"}`
	)
	poll := func(status string) string { return `{"resultType":"complete","taskId":"t1","status":"` + status + `"}` }
	for name, tt := range map[string]struct {
		steps []string // method and result, in turn
		want  journal.Status
		error string
	}{
		"legacy result":         {[]string{"tools/call", legacyTask, "tasks/get", poll("working"), "tasks/get", poll("completed"), "tasks/result", `{"content":[]}`}, journal.OK, ""},
		"legacy result at once": {[]string{"tools/call", legacyTask, "tasks/result", `{"content":[]}`}, journal.OK, ""},
		"legacy tool error":     {[]string{"tools/call", legacyTask, "tasks/get", poll("completed"), "tasks/result", `{"content":[],"isError":true}`}, journal.ToolError, ""},
		"legacy cancel":         {[]string{"tools/call", legacyTask, "tasks/cancel", poll("cancelled")}, journal.Cancelled, ""},
		"modern result":         {[]string{"tools/call", modernTask, "tasks/get", poll("working"), "tasks/get", `{"taskId":"t1","status":"completed","result":{"content":[]}}`}, journal.OK, ""},
		"modern tool error":     {[]string{"tools/call", modernTask, "tasks/get", `{"taskId":"t1","status":"completed","result":{"isError":true}}`}, journal.ToolError, ""},
		"modern failure":        {[]string{"tools/call", modernTask, "tasks/get", `{"taskId":"t1","status":"failed","error":{"code":-1,"message":"no disk"}}`}, journal.Failed, "no disk"},
		"receipts":              {[]string{"tools/call", modernTask, "tasks/update", receipt, "tasks/cancel", receipt, "tasks/get", poll("cancelled")}, journal.Cancelled, ""},
		"still working":         {[]string{"tools/call", modernTask, "tasks/update", receipt, "tasks/get", poll("input_required")}, journal.Pending, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRecorder(t, journal.Options{})
			c := r.ClientConn()
			for i := 0; i < len(tt.steps); i += 2 {
				params := `{"taskId":"t1"}`
				if tt.steps[i] == "tools/call" {
					params = `{"name":"long"}`
				}
				id := strings.Repeat("1", i+1)
				c.AddFrame(received, []byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"`+tt.steps[i]+`","params":`+params+`}`), nil)
				c.AddFrame(sent, []byte(`{"jsonrpc":"2.0","id":`+id+`,"result":`+tt.steps[i+1]+`}`), nil)
			}
			states := lastStates(t, r)
			op := states[1]
			if len(states) != 1 || op.Status != tt.want || op.Error != tt.error {
				t.Errorf("%d operations, the first is %+v; want one that ends as %s", len(states), op, tt.want)
			}
			records, _ := readAll(t, r)
			for _, record := range records {
				if f := record.Frame; f != nil && f.Operation != 1 {
					t.Errorf("%s belongs to operation %d, want 1", f.Body, f.Operation)
				}
			}
			if n := r.OpenRequests(); n != 0 {
				t.Errorf("%d requests are still open", n)
			}
		})
	}
}

// The time between the polls of a task is the server's.
func TestTimeOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := journal.New(journal.Options{})
		defer r.Close()
		c := r.ClientConn()
		c.AddFrame(received, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"long"}}`), nil)
		c.AddFrame(sent, []byte(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"t","status":"working"}}`), nil)
		time.Sleep(time.Minute) // the bubble's
		c.AddFrame(received, []byte(`{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"t"}}`), nil)
		c.AddFrame(sent, []byte(`{"jsonrpc":"2.0","id":2,"result":{"taskId":"t","status":"completed","result":{}}}`), nil)
		if op := lastStates(t, r)[1]; op.InServer != time.Minute || op.Took() != time.Minute || !op.End.Equal(op.Start.Add(time.Minute)) {
			t.Errorf("the operation is %+v, want a minute of the server", op)
		}
	})
}
