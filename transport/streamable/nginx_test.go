package streamable_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/template"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/freeport"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

const (
	// nginxEnv names the nginx for the tests, which plain go test runs without.
	nginxEnv = "DOWEL_TEST_NGINX"
	// replicaEnv makes the test binary a server: the key that it shares with the other ones.
	replicaEnv = "DOWEL_TEST_REPLICA"

	replicas   = 3
	askTimeout = time.Hour // of the replicas
)

func nginxPath(t *testing.T) string {
	t.Helper()
	path := os.Getenv(nginxEnv)
	if path == "" {
		t.Skipf("%s is not set: set it to the path of nginx to test behind it", nginxEnv)
	}
	return path
}

// TestReplica is the main function of a replica's process.
func TestReplica(t *testing.T) {
	secret, err := hex.DecodeString(os.Getenv(replicaEnv))
	if err != nil || len(secret) == 0 {
		return
	}
	keys, err := mcp.NewKeys(secret)
	if err != nil {
		t.Fatal(err)
	}
	s := server.New("replica", "1", &server.Options{Keys: keys, Logger: slog.New(slog.DiscardHandler), ListInterval: -1})
	server.Tool(s, "which", "Says which replica it is.", func(context.Context, struct{}) (string, error) { return fmt.Sprint(os.Getpid()), nil })
	server.Tool(s, "ask", "Asks for a name.", func(ctx context.Context, in message) (string, error) {
		who, err := server.Ask[person](ctx, "who", in.Message)
		return in.Message + who.Name, err
	})
	server.Tool(s, "progress", "Reports until a file is there.", func(ctx context.Context, in message) (string, error) {
		for i := 1; ; i++ {
			server.Progress(ctx, float64(i), 0, "")
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return "", ctx.Err()
			}
			if _, err := os.Stat(in.Message); err == nil {
				return "done", nil
			}
		}
	})
	var grown atomic.Int32
	server.Tool(s, "grow", "Adds a tool.", func(context.Context, struct{}) (string, error) {
		server.Tool(s, fmt.Sprintf("grown%d", grown.Add(1)), "New.", func(context.Context, struct{}) (string, error) { return "", nil })
		return "", nil
	})
	endpoint := streamable.Handler(s, &streamable.Options{
		ServerOptions: transport.ServerOptions{AskTimeout: askTimeout}, JSONFor: 100 * time.Millisecond,
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: endpoint}
	go func() { _ = web.Serve(listener) }()
	fmt.Printf("serving %s\n", listener.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends it
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = endpoint.Shutdown(ctx)
	_ = web.Close()
}

// startReplica starts a server process and returns its address.
func startReplica(t *testing.T, secret string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestReplica$")
	cmd.Env = append(os.Environ(), replicaEnv+"="+secret)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	t.Cleanup(func() {
		in.Close()
		for lines.Scan() { // until it has ended
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("a replica: %v", err)
		}
	})
	for lines.Scan() {
		if addr, ok := strings.CutPrefix(lines.Text(), "serving "); ok {
			return addr
		}
	}
	t.Fatal("a replica does not serve")
	return ""
}

// nginxConfig has nginx's default settings for streams. One listener distributes requests round
// robin over the replicas; the other sends all requests of a session to the same replica.
var nginxConfig = template.Must(template.New("").Parse(`
daemon off;
worker_processes 1;
pid {{.Dir}}/pid;
error_log {{.Dir}}/error.log;
events { worker_connections 256; }
http {
	access_log off;
	client_body_temp_path {{.Dir}}/body;
	proxy_temp_path {{.Dir}}/proxy;
	fastcgi_temp_path {{.Dir}}/fastcgi;
	uwsgi_temp_path {{.Dir}}/uwsgi;
	scgi_temp_path {{.Dir}}/scgi;
	upstream robin {
{{range .Replicas}}		server {{.}};
{{end}}	}
	upstream sticky {
		hash $http_mcp_session_id consistent;
{{range .Replicas}}		server {{.}};
{{end}}	}
	server {
		listen {{.Robin}};
		location / {
			proxy_pass http://robin;
			proxy_set_header Host $http_host;
		}
	}
	server {
		listen {{.Sticky}};
		location / {
			proxy_pass http://sticky;
			proxy_set_header Host $http_host;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
		}
	}
}
`))

// freeAddress returns a loopback address without a listener.
func freeAddress(t *testing.T) string {
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// startNginx starts three replicas and nginx in front of them; robin and sticky are URLs.
func startNginx(t *testing.T) (robin, sticky string) {
	t.Helper()
	path := nginxPath(t)
	secret := hex.EncodeToString([]byte("a secret of thirty-two bytes, or"))
	conf := struct {
		Dir, Robin, Sticky string
		Replicas           []string
	}{Dir: t.TempDir(), Robin: freeAddress(t), Sticky: freeAddress(t)}
	for range replicas {
		conf.Replicas = append(conf.Replicas, startReplica(t, secret))
	}
	var text bytes.Buffer
	if err := nginxConfig.Execute(&text, conf); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(conf.Dir, "nginx.conf")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-p", conf.Dir, "-c", file, "-e", filepath.Join(conf.Dir, "error.log"))
	if os.Geteuid() == 0 { // otherwise the workers run as user nobody, which cannot write here
		cmd.Args = append(cmd.Args, "-g", "user root;")
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if said, _ := os.ReadFile(filepath.Join(conf.Dir, "error.log")); t.Failed() {
			t.Logf("nginx: %s", said)
		}
	})
	for _, addr := range []string{conf.Robin, conf.Sticky} {
		polltest.Until(t, "nginx listens", func() bool {
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				conn.Close()
			}
			return err == nil
		})
	}
	return "http://" + conf.Robin + "/mcp", "http://" + conf.Sticky + "/mcp"
}

// answerName answers a question for a name with the text of the question.
func answerName(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: fmt.Appendf(nil, `{"name":%q}`, strings.ToUpper(q.Message))}, nil
}

// Replicas behind nginx with a common key must serve clients of every revision like one server,
// except for live streams of legacy sessions, which belong to one replica.
func TestNginx(t *testing.T) {
	robin, sticky := startNginx(t)
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		c := dial(t, robin, r, client.Options{Answers: client.Answers{Elicit: answerName}})
		t.Run("every replica answers", func(t *testing.T) {
			seen := map[string]bool{}
			for range 4 * replicas {
				which, err := client.Call[string](t.Context(), c, "which", nil)
				if err != nil {
					t.Fatal(err)
				}
				seen[which] = true
			}
			if len(seen) != replicas {
				t.Errorf("%d of %d replicas have answered", len(seen), replicas)
			}
		})
		t.Run("progress", func(t *testing.T) {
			// The call ends only if progress arrives before the result.
			file := filepath.Join(t.TempDir(), "arrived")
			ctx, cancel := context.WithTimeout(t.Context(), polltest.Limit)
			defer cancel()
			arrived := 0
			onProgress := func(mcp.ProgressParams) {
				if arrived++; arrived == 2 {
					if err := os.WriteFile(file, nil, 0o600); err != nil {
						t.Error(err)
					}
				}
			}
			if got, err := client.Call[string](ctx, c, "progress", message{file}, client.CallOptions{OnProgress: onProgress}); err != nil || got != "done" {
				t.Errorf("%q, %v", got, err)
			}
		})
		t.Run("many at once", func(t *testing.T) {
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					if _, err := client.Call[string](t.Context(), c, "which", nil); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		})
		t.Run("cancel", func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if _, err := client.Call[string](ctx, c, "progress", message{"/nonexistent"}); err == nil {
				t.Error("the call was not cancelled")
			}
		})
	})
	t.Run("asks", func(t *testing.T) { asksBehindNginx(t, robin, sticky) })
	t.Run("watch", func(t *testing.T) {
		inBothEras(t, func(t *testing.T, r mcp.Revision) { watchBehindNginx(t, robin, r) })
	})
}

// A watch hears only the changes of its own replica, so the test changes each one.
func watchBehindNginx(t *testing.T, url string, r mcp.Revision) {
	c := dial(t, url, r, client.Options{})
	w, err := c.Watch(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true})
	if err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(polltest.Limit, func() { w.Close() }).Stop()
	for range 3 * replicas {
		if _, err := client.Call[string](t.Context(), c, "grow", nil); err != nil {
			t.Fatal(err)
		}
	}
	for change, err := range w.Changes() {
		if err != nil || change.Method != mcp.NotificationToolsChanged {
			t.Errorf("%v, %v", change, err)
		}
		return
	}
	t.Error("nobody was told")
}

// A modern question may be answered at any replica, because its state is sealed. A legacy question
// is open only at the replica that has asked. Another one refuses the answer with 400, and the call
// fails at once. If nginx keeps sessions together, it works.
func asksBehindNginx(t *testing.T, robin, sticky string) {
	for _, test := range []struct {
		url      string
		revision mcp.Revision
		all      bool // every question is answered
	}{
		{robin, mcp.LatestRevision, true}, {sticky, mcp.LatestRevision, true},
		{sticky, mcp.Revision20251125, true}, {sticky, mcp.Revision20250618, true},
		{robin, mcp.Revision20251125, false}, {robin, mcp.Revision20250618, false},
	} {
		c := dial(t, test.url, test.revision, client.Options{Answers: client.Answers{Elicit: answerName}})
		var got []string
		for range 10 { // a round robin may happen to send all answers of a round to the right process
			got = append(got, askAtOnce(t, c)...)
			if test.all || slices.Contains(got, "unanswered") {
				break
			}
		}
		for _, outcome := range slices.Compact(slices.Sorted(slices.Values(got))) {
			if outcome != "answered" && (outcome != "unanswered" || test.all) {
				t.Errorf("%s %s: %s", test.url, test.revision, outcome)
			}
		}
		if !test.all && !slices.Contains(got, "unanswered") {
			t.Errorf("%s %s: a round robin has answered all, which this test says it cannot", test.url, test.revision)
		}
	}
}

// askAtOnce makes some calls at once whose tool asks its user, and returns their outcomes:
// answered, unanswered or an error.
func askAtOnce(t *testing.T, c *client.Client) (got []string) {
	t.Helper()
	const questions = 6
	outcomes := make(chan string, questions)
	for i := range questions {
		go func() {
			name := fmt.Sprintf("n%d", i)
			got, err := client.Call[string](t.Context(), c, "ask", message{name}, client.CallOptions{Limits: client.Limits{Total: polltest.Limit}})
			switch {
			case err == nil && got == name+strings.ToUpper(name):
				outcomes <- "answered"
			case err != nil && strings.Contains(err.Error(), "sticky sessions"):
				outcomes <- "unanswered"
			default:
				outcomes <- fmt.Sprintf("%s: %q, %v", name, got, err)
			}
		}()
	}
	for range questions {
		got = append(got, <-outcomes)
	}
	return got
}
