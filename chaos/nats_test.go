//go:build linux

package chaos

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/freeport"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A node is a NATS server of a cluster; it reads its configuration from a variable.
type node struct {
	Name   string
	Port   int // for clients
	Peer   int // for the other servers; 0 without other servers
	Peers  []int
	Folder string
}

const nodeVariable = "DOWEL_CHAOS_NODE"

func init() { roles["nats"] = runNode }

func runNode() {
	var n node
	if err := json.Unmarshal([]byte(os.Getenv(nodeVariable)), &n); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	o := &server.Options{ServerName: n.Name, Host: "127.0.0.1", Port: n.Port, JetStream: true, StoreDir: n.Folder, NoSigs: true}
	if n.Peer != 0 {
		o.Cluster = server.ClusterOpts{Name: "chaos", Host: "127.0.0.1", Port: n.Peer, NoAdvertise: true}
		for _, peer := range n.Peers {
			o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", peer)})
		}
	}
	s, err := server.NewServer(o)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s.ConfigureLogger()
	s.Start()
	if !s.ReadyForConnections(polltest.Limit) {
		os.Exit(1)
	}
	fmt.Println("READY", n.Name)
	s.WaitForShutdown()
}

// startNodes starts n NATS servers as one cluster, and waits until JetStream has a leader.
func startNodes(t *testing.T, n int) (all []*process, addresses []string) {
	t.Helper()
	ports := findPorts(t, 2*n)
	for i := range n {
		config := node{Name: fmt.Sprintf("n%d", i+1), Port: ports[i], Folder: filepath.Join(t.TempDir(), "js")}
		if n > 1 {
			config.Peer, config.Peers = ports[n+i], ports[n:]
		}
		text, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		p := &process{t: t, name: config.Name, ready: regexp.MustCompile("READY n"), command: func() *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), roleVariable+"=nats", nodeVariable+"="+string(text))
			return cmd
		}}
		all, addresses = append(all, p), append(addresses, fmt.Sprintf("127.0.0.1:%d", config.Port))
	}
	for _, p := range all {
		p.start()
		t.Cleanup(p.kill)
	}
	awaitLeader(t, addresses[0])
	return all, addresses
}

// awaitLeader waits until JetStream answers.
func awaitLeader(t *testing.T, address string) {
	t.Helper()
	conn, err := nats.Connect("nats://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	polltest.UntilNil(t, func() error { _, err := js.AccountInfo(t.Context()); return err })
}

// findPorts returns ports for processes that may be started again.
func findPorts(t *testing.T, n int) []int {
	t.Helper()
	ports, err := freeport.FindAll(n)
	if err != nil {
		t.Fatal(err)
	}
	return ports
}
