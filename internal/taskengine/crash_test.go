package taskengine

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/tasks"
)

// acknowledged is a line that a child process writes after a change was acknowledged.
type acknowledged struct {
	ID      string
	Version uint64
	Status  tasks.Status
	Asked   int    // counts the changes of the task
	Result  string // of a completed task
}

// changesPerTask is the number of changes after which a task of a child process is completed.
const changesPerTask = 5

// runCrashing makes and changes tasks with eight workers, and writes what was acknowledged, until
// the process is killed.
func runCrashing(folder string) {
	d := OnDisk(folder)
	lines := make(chan acknowledged, 1000)
	for range 8 {
		go func() {
			for {
				changeTask(d, lines)
			}
		}()
	}
	out := json.NewEncoder(os.Stdout)
	for line := range lines {
		if out.Encode(line) != nil {
			return
		}
	}
}

// changeTask makes a task and changes it until it is completed.
func changeTask(d *Disk, lines chan<- acknowledged) {
	ctx, now := context.Background(), time.Now()
	r := &tasks.Record{ID: rand.Text(), Owner: rand.Text(), Tool: "t", Status: tasks.Working, Created: now, Updated: now, TTL: time.Hour,
		Params: json.RawMessage(`{"padding":"` + string(bytes.Repeat([]byte("x"), mathrand.IntN(4000))) + `"}`)}
	if err := d.Create(ctx, r, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for {
		line := acknowledged{r.ID, r.Version, r.Status, r.Asked, ""}
		if r.Result != nil {
			line.Result = string(r.Result)
		}
		if lines <- line; r.Status.IsTerminal() {
			return
		}
		next, _, err := tasks.Update(ctx, d, r.ID, func(next *tasks.Record) bool {
			if next.Asked++; next.Asked == changesPerTask {
				next.Status, next.Result = tasks.Completed, json.RawMessage(strconv.Quote(rand.Text()))
			}
			return true
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		r = next
	}
}

// A process that is killed under load loses no acknowledged change, and no task leaves its end,
// however often that happens. DOWEL_TASK_KILLS is the number of kills.
func TestKilledProcessLosesNothing(t *testing.T) {
	kills := 10
	if text := os.Getenv("DOWEL_TASK_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil || kills < 1 {
			t.Fatalf("DOWEL_TASK_KILLS is %q, want a number of kills", text)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := mathrand.New(mathrand.NewPCG(seed, 0))
	folder := filepath.Join(t.TempDir(), "tasks")
	known, changes := map[string]acknowledged{}, 0
	for range kills {
		lines := killUnderLoad(t, folder, random.IntN(200))
		for _, line := range lines {
			if last := known[line.ID]; last.Version < line.Version {
				known[line.ID] = line
			}
		}
		changes += len(lines)
		checkKept(t, folder, known)
	}
	t.Logf("%d kills, %d acknowledged changes of %d tasks", kills, changes, len(known))
	if changes < kills {
		t.Error("the processes were killed before they changed anything")
	}
}

// killUnderLoad runs a child process, kills it after a number of changes, and returns what was
// acknowledged.
func killUnderLoad(t *testing.T, folder string, after int) (lines []acknowledged) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashRole+"="+folder)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for in := bufio.NewScanner(out); in.Scan(); {
		var line acknowledged
		if json.Unmarshal(in.Bytes(), &line) != nil {
			break // the kill has cut the line
		}
		if lines = append(lines, line); len(lines) == after+1 {
			_ = cmd.Process.Kill()
		}
	}
	if _ = cmd.Wait(); len(lines) <= after {
		t.Fatalf("the child process has ended by itself: %s", stderr.Bytes())
	}
	return lines
}

// checkKept checks that the store has each task at its last acknowledged change, or a later one
// that was not acknowledged before the kill. A task that has ended must be the same.
func checkKept(t *testing.T, folder string, known map[string]acknowledged) {
	t.Helper()
	d := OnDisk(folder)
	defer d.Close()
	for id, want := range known {
		r, err := d.Load(t.Context(), id)
		switch {
		case err != nil:
			t.Fatalf("an acknowledged task is lost: %v: %+v", err, want)
		case r.Version < want.Version || r.Asked < want.Asked:
			t.Fatalf("an acknowledged change is lost: want %+v, got version %d, change %d", want, r.Version, r.Asked)
		case want.Status.IsTerminal() && (r.Version != want.Version || r.Status != want.Status || string(r.Result) != want.Result):
			t.Fatalf("a task has left its end: want %+v, got %+v", want, r)
		}
	}
}
