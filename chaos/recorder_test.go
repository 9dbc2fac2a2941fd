//go:build linux

package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/dowel-mcp/dowel/chaos/history"
)

// recordPath receives what the handlers and stores of other processes do.
const recordPath = "/record"

// record is one of both.
type record struct {
	Step  *history.Step  `json:",omitempty"`
	Write *history.Write `json:",omitempty"`
}

func takeRecord(w http.ResponseWriter, r *http.Request, h *history.History) {
	var got record
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if s := got.Step; s != nil {
		h.AddStep(s.Job, s.What, s.Value, s.By)
	}
	if got.Write != nil {
		h.AddWrite(*got.Write)
	}
}

// A recorder sends the actions of a process to the test. The process continues when the test has
// received the action.
type recorder string

func (url recorder) send(r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	resp, err := http.Post(string(url), "application/json", bytes.NewReader(data))
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the test answers with status %d", resp.StatusCode)
	}
	return nil
}

// fail ends a process that cannot do what its role says.
func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
