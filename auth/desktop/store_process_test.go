package desktop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/auth"
)

// childUpdates is the number of updates that a child process makes.
const childUpdates = 20

// runStoreChild is the program of the child processes. It adds 1 to the number in the record's
// access token, from several goroutines.
func runStoreChild(folder string) int {
	s, err := OpenStore(folder, &StoreOptions{NoKeyring: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var all sync.WaitGroup
	failures := make([]error, childUpdates)
	for i := range childUpdates {
		all.Go(func() {
			failures[i] = s.Update(context.Background(), server, func(r *auth.Record) (*auth.Record, error) {
				if r == nil {
					r = &auth.Record{Server: server, AccessToken: "0"}
				}
				n, err := strconv.Atoi(r.AccessToken)
				r.AccessToken = strconv.Itoa(n + 1)
				return r, err
			})
		})
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestProcessesLoseNoUpdate also lets the processes race for the first key.
func TestProcessesLoseNoUpdate(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const processes = 3
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "TEST_STORE_FOLDER="+folder)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	s := openTestStore(t, folder, nil, nil)
	checkToken(t, s, strconv.Itoa(processes*childUpdates))
	if r, err := s.Load(t.Context(), server); err != nil || r.Generation != processes*childUpdates {
		t.Errorf("the record is %+v, %v", r, err)
	}
}
