package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/modelserver"
)

// Tests of dowel run as a user has it: five servers, three from npm and two of dowel's own, and a
// model server that follows a script and refuses the requests that its provider would refuse.

// worker is a user with a model and servers.
type worker struct {
	*resident
	model *modelserver.Server
}

// agentServers is the part of the configuration with the servers. The server everything copies its
// input to a file; memory writes its process id to one.
const agentServers = `"mcpServers": {
    "everything": {"command": "sh", "args": ["-c", "tee -a \"$0\" | \"$1\"", %[1]q, %[2]q]},
    "filesystem": {"command": %[3]q, "args": [%[4]q]},
    "memory": {"command": "sh", "args": ["-c", "echo $$ >> memory.pid; exec \"$0\"", %[5]q], "cwd": %[4]q, "env": {"MEMORY_FILE_PATH": %[6]q}},
    "shell": {"command": %[7]q, "args": ["serve", "shell", "dir=%[4]s"]},
    "files": {"command": %[7]q, "args": ["serve", "files", "roots=%[4]s"]}
  }`

// newWorker returns a worker with a model server that speaks a provider's API and follows script.
// FOLDER in the script stands for the project's folder.
func newWorker(t *testing.T, provider string, script []byte) *worker {
	t.Helper()
	w := &worker{resident: newResident(t)}
	parsed, err := modelserver.Parse(bytes.ReplaceAll(script, []byte("FOLDER"), []byte(w.project)))
	if err != nil {
		t.Fatal(err)
	}
	w.model = modelserver.New(t.Error, parsed, modelserver.Chat, modelserver.Messages)
	web := httptest.NewServer(w.model)
	t.Cleanup(web.Close)
	w.env = append(w.env, "MODEL_KEY="+parsed.Key)
	w.write(filepath.Join(w.home, ".config", "dowel", "dowel.json"), fmt.Sprintf(`{
  "models": {"scripted": {"provider": %q, "model": "scripted", "url": %q, "key": "${MODEL_KEY}", "window": 400000}}, // small beside the window: the definitions of the tools
  "gateway": {"audit": %q},
  `, provider, web.URL+"/v1", w.auditFile())+fmt.Sprintf(agentServers, w.inputFile(), npmPath(t, "mcp-server-everything"),
		npmPath(t, "mcp-server-filesystem"), w.project, npmPath(t, "mcp-server-memory"), filepath.Join(w.home, "memory.json"), binaryPath(t, "dowel"))+"\n}\n")
	return w
}

func (w *worker) auditFile() string { return filepath.Join(w.home, "audit.jsonl") }

// inputFile returns the file with the input of the server everything.
func (w *worker) inputFile() string { return filepath.Join(w.home, "heard.jsonl") }

// event is a line of dowel run --json, with the members that the tests read.
type event struct {
	Event, Tool, Text, Reason, Answer, Refused, Kind string
	Error                                            json.RawMessage
	Exit, Step                                       int
	Content                                          []struct{ Type, MIMEType, Text string }
	Usage                                            struct{ Input, Cached, Output int }
}

func parseEvents(t *testing.T, text string) (all []event) {
	t.Helper()
	for line := range strings.Lines(text) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, shorten(line))
		}
		all = append(all, e)
	}
	return all
}

// runTask runs dowel run to its end and returns its output.
func (w *worker) runTask(words ...string) output {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*runLimit)
	defer cancel()
	cmd := w.process(ctx, append([]string{"run"}, words...)...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	_ = cmd.Run() // ProcessState has the result
	return output{words, stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), time.Since(start)}
}

// expectPlayed fails the test if the model server refused a request or did not play all turns of
// its script.
func (w *worker) expectPlayed() {
	w.t.Helper()
	for _, r := range w.model.Requests() {
		if r.Refused != "" {
			w.t.Errorf("the provider refuses a request: %s\n%s", r.Refused, shorten(string(r.Body)))
		}
	}
	if n := w.model.Left(); n > 0 {
		w.t.Errorf("%d turns of the script were not played", n)
	}
}

func TestAgent(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("testdata", "agent.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, provider := range []string{"openai", "anthropic"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			w := newWorker(t, provider, script)
			w.writeFiles()
			out := w.runTask("Do all of it.", "--json", "--approve", "all", "-f", filepath.Join(w.home, "attached.txt"), "--answer", "name=Ada Lovelace")
			if out.code != 0 {
				t.Fatalf("exit code %d\nstdout: %s\nstderr: %s", out.code, lastLines(out.stdout), shorten(out.stderr))
			}
			w.expectPlayed()
			w.checkEvents(parseEvents(t, out.stdout))
			if started := strings.Count(w.read(filepath.Join(w.project, "memory.pid")), "\n"); started != 2 {
				t.Errorf("the server memory was started %d times, want 2", started)
			}
			if text := w.read(filepath.Join(w.project, "note.txt")); text != "line one\nline 2\n" {
				t.Errorf("the edited file holds %q", text)
			}
			w.checkAudit()
			expectNoneLeft(t, w.mark)
		})
	}
}

// writeFiles writes the files that the script names.
func (w *worker) writeFiles() {
	var large strings.Builder
	for i := 0; large.Len() < 5<<20; i++ {
		fmt.Fprintf(&large, "line %d of the large file, which is longer\n", i)
	}
	fmt.Fprintf(&large, "line 130000 of the large file\n")
	w.write(filepath.Join(w.project, "large.txt"), large.String())
	w.write(filepath.Join(w.project, "note.txt"), "line one\nline two\n")
	w.write(filepath.Join(w.home, "attached.txt"), "the attached note\n")
	if err := os.Mkdir(filepath.Join(w.project, "sub"), 0o700); err != nil {
		w.t.Fatal(err)
	}
}

func (w *worker) read(path string) string {
	w.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		w.t.Error(err)
	}
	return string(text)
}

// checkEvents checks the events of the run.
func (w *worker) checkEvents(all []event) {
	w.t.Helper()
	calls, results := map[string]int{}, map[string]event{}
	kinds := map[string]int{}
	for _, e := range all {
		kinds[e.Event]++
		switch e.Event {
		case "call":
			calls[e.Tool]++
		case "result":
			results[e.Tool+" "+string(e.Error)] = e
		case "question":
			kinds["question "+e.Kind]++
		}
	}
	for _, failed := range []string{"filesystem__read_text_file true", "everything__get-sum true"} {
		if _, ok := results[failed]; !ok {
			w.t.Errorf("no result of %s", failed)
		}
	}
	if picture := results["everything__get-tiny-image false"]; !slices.ContainsFunc(picture.Content, func(c struct{ Type, MIMEType, Text string }) bool { return c.Type == "image" }) {
		w.t.Errorf("the picture is %+v", picture)
	}
	if kinds["question elicitation"] != 1 || kinds["question sampling"] != 1 {
		w.t.Errorf("the questions are %v", kinds)
	}
	end := all[len(all)-1]
	if end.Event != "end" || end.Reason != "answered" || end.Answer != "All of it is done." || end.Usage.Output < 55 {
		w.t.Errorf("the end is %+v", end)
	}
	if calls["shell__run"] != 2 || calls["everything__echo"] != 1 || calls["memory__read_graph"] != 1 {
		w.t.Errorf("the calls are %v", calls)
	}
}

// checkAudit checks that the audit log has the decisions and the calls.
func (w *worker) checkAudit() {
	w.t.Helper()
	log := w.read(w.auditFile())
	for _, want := range []string{
		`"server":"shell","name":"run","outcome":"allowed","by":"mode"`, `"server":"shell","name":"run","outcome":"ok"`,
		`"server":"filesystem","name":"read_text_file","outcome":"tool error"`, `"method":"sampling/createMessage","server":"everything","outcome":"allowed"`,
	} {
		if !strings.Contains(log, want) {
			w.t.Errorf("no %s in the audit log: %s", want, shorten(log))
		}
	}
}

func lastLines(text string) string { return text[max(0, len(text)-2000):] }

// Ctrl-C during a call cancels it at its server. A server of the running dowel continues to run.
func TestAgentInterrupted(t *testing.T) {
	const script = `{"model": "scripted", "key": "the-key", "turns": [
		{"text": "This takes long.", "calls": [{"name": "everything__trigger-long-running-operation", "arguments": {"duration": 60, "steps": 600}}]}]}`
	for _, provider := range []string{"openai", "anthropic"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			w := newWorker(t, provider, []byte(script))
			w.startDowel([]string{"everything", "filesystem", "memory", "shell", "files"})
			cmd := w.process(context.Background(), "run", "Wait.", "--json", "--approve", "all")
			progress, stdout := make(chan struct{}), &textWatcher{text: `"event":"progress"`}
			stdout.seen = sync.OnceFunc(func() { close(progress) })
			var stderr strings.Builder
			cmd.Stdout, cmd.Stderr = stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-progress:
			case <-time.After(runLimit):
				t.Errorf("no progress within %v", runLimit)
			}
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // ProcessState has the result
			all := parseEvents(t, stdout.all.String())
			if end := all[len(all)-1]; cmd.ProcessState.ExitCode() != 130 || end.Event != "end" || end.Reason != "interrupted" || end.Exit != 130 || end.Answer != "This takes long." {
				t.Errorf("exit code %d, the end is %+v\nstderr: %s", cmd.ProcessState.ExitCode(), end, stderr.String())
			}
			w.expectPlayed()
			w.awaitCancellation()
			out := w.runDowel("call", "everything.echo", "message=alive")
			if !strings.Contains(out, "alive") {
				t.Errorf("the server no longer answers: %s", out)
			}
			w.stopDowel(6)
		})
	}
}

var longCall = regexp.MustCompile(`"id":(\d+|"[^"]*")[^\n]*trigger-long-running-operation|trigger-long-running-operation[^\n]*"id":(\d+|"[^"]*")`)

// awaitCancellation waits until the server has received the cancellation of the call.
func (w *worker) awaitCancellation() {
	w.t.Helper()
	for end := time.Now().Add(runLimit); ; time.Sleep(50 * time.Millisecond) {
		heard := w.read(w.inputFile())
		m := longCall.FindStringSubmatch(heard)
		if m != nil && strings.Contains(heard, `"notifications/cancelled"`) && strings.Contains(heard, `"requestId":`+m[1]+m[2]) {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("the server did not receive the cancellation: %s", lastLines(heard))
		}
	}
}

// textWatcher keeps the written text, and calls seen once it contains a given text.
type textWatcher struct {
	text string
	seen func()
	all  bytes.Buffer
}

func (n *textWatcher) Write(p []byte) (int, error) {
	n.all.Write(p)
	if bytes.Contains(n.all.Bytes(), []byte(n.text)) {
		n.seen()
	}
	return len(p), nil
}

// Resources of the reference servers: one of a template in the task, one of a list that the model
// reads, and two that do not exist.
func TestAgentResources(t *testing.T) {
	t.Parallel()
	const script = `{"key": "k", "turns": [
		{"expect": ["The resource demo://resource/dynamic/text/7 of the server everything:", "Resource 7: This is a plaintext resource", "Read @everything:demo://resource/dynamic/text/7, please."],
			"calls": [{"name": "list_resources", "arguments": {"server": "everything", "search": "features"}}]},
		{"take": {"URI": "(demo://resource/static/document/features\\S*) "}, "calls": [{"name": "read_resource", "arguments": {"uri": "{{URI}}"}}, {"name": "read_resource", "arguments": {"uri": "demo://nothing"}}]},
		{"expect": ["The resource demo://resource/static/document/features.md of the server everything:", "Error: "], "text": "Done."}]}`
	w := newWorker(t, "openai", []byte(script))
	w.writeFiles()
	out := w.runTask("Read @everything:demo://resource/dynamic/text/7, please.", "--json")
	if out.code != 0 {
		t.Fatalf("exit code %d\nstdout: %s\nstderr: %s", out.code, lastLines(out.stdout), shorten(out.stderr))
	}
	w.expectPlayed()
	if out := w.runTask("Read @everything:demo://resource/dynamic/txt/7"); out.code != 1 || !strings.Contains(out.stderr, "everything has no resource demo://resource/dynamic/txt/7") ||
		!strings.Contains(out.stderr, ", demo://resource/dynamic/text/{resourceId}") {
		t.Errorf("exit code %d\nstderr: %s", out.code, shorten(out.stderr))
	}
}
