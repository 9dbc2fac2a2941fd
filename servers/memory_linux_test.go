package servers

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/programtest"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// Sizes of the test of memory.
const (
	largeFile = 256 << 20 // bytes; a program that keeps the rows needs several times as much
	maxMemory = 256 << 20 // bytes of the process at its peak
)

// dowel-data analyzes and sorts a large file whose values are all different, within its bound of
// memory.
func TestDataMemory(t *testing.T) {
	folder := t.TempDir()
	rows := writeLargeFile(t, filepath.Join(folder, "large.csv"))
	program := filepath.Join(folder, "dowel-data")
	buildProgram(t, ".", program, "./cmd/dowel-data")
	c, pid := startProgram(t, program, "roots="+folder)
	var analysis struct{ Rows int }
	var result struct{ Rows [][]any }
	callTool(t, c, "analyze_csv", `{"path":"large.csv"}`, &analysis)
	analyzed, err1 := programtest.PeakMemory(pid)
	callTool(t, c, "query", `{"sql":"SELECT count(*), max(n) FROM (SELECT mail, count(*) AS n FROM large GROUP BY mail ORDER BY mail DESC)","tables":{"large":"large.csv"}}`, &result)
	if analysis.Rows != rows || fmt.Sprint(result.Rows) != fmt.Sprintf("[[%v 1]]", float64(rows)) {
		t.Errorf("the analysis has %d rows and the query %v, want %d", analysis.Rows, result.Rows, rows)
	}
	queried, err2 := programtest.PeakMemory(pid)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rows in %d MiB: at most %d MiB of memory after the analysis, %d MiB after the query", rows, largeFile>>20, analyzed>>20, queried>>20)
	if queried > maxMemory {
		t.Errorf("dowel-data has used %d bytes, want at most %d", queried, maxMemory)
	}
}

// writeLargeFile writes a CSV file and returns the number of its rows.
func writeLargeFile(t *testing.T, path string) (rows int) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(file, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	written, err := fmt.Fprintln(w, "id,mail,city,price,note")
	for ; written < largeFile && err == nil; rows++ {
		var n int
		n, err = fmt.Fprintf(w, "%d,%016x@example.com,city-%d,%d.%02d,\"a note, %s\"\n", rows, random.Uint64(), random.IntN(50), random.IntN(10_000), random.IntN(100), note)
		written += n
	}
	if err := errors.Join(err, w.Flush(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return rows
}

var note = strings.Repeat("some text ", 40)

// startProgram starts a server and returns a client and the number of the process.
func startProgram(t *testing.T, program string, words ...string) (*client.Client, int) {
	t.Helper()
	cmd := exec.Command(program, words...)
	cmd.Stderr = os.Stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(t.Context(), stdio.Join(out, in), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close() // the program ends with its input
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", program, err)
		}
	})
	return c, cmd.Process.Pid
}

func callTool(t *testing.T, c *client.Client, tool, arguments string, into any) {
	t.Helper()
	out, err := client.Call[json.RawMessage](t.Context(), c, tool, json.RawMessage(arguments))
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
}
