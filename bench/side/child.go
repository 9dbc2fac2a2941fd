package side

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/dowel-mcp/dowel/bench/peer"
)

// Child is a server in a separate process. A server on stdio is started by its client, with Args.
type Child struct {
	Args []string // the command line
	URL  string   // the address of a server over HTTP

	folder  string
	listen  *net.UnixListener
	channel net.Conn
	in      *json.Decoder
	process *exec.Cmd // over HTTP
}

// Options describe the server of a child.
type Options struct {
	Peer   peer.Peer
	Era    peer.Era
	HTTP   bool
	Stream bool
	Tools  int // 0: one
}

// answerTimeout bounds the start of a child, each of its answers, and its end.
const answerTimeout = 30 * time.Second

// New prepares a child and, for HTTP, starts it. The caller must call Close.
func New(o Options) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(folder, "side")
	listen, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	c := &Child{folder: folder, listen: listen, Args: []string{
		self, Command, "-peer", o.Peer.Name(), "-side", socket, "-era", string(o.Era), "-tools", strconv.Itoa(max(o.Tools, 1)),
		"-http=" + strconv.FormatBool(o.HTTP), "-stream=" + strconv.FormatBool(o.Stream),
	}}
	if !o.HTTP {
		return c, nil
	}
	return c, c.start()
}

func (c *Child) start() error {
	c.process = exec.Command(c.Args[0], c.Args[1:]...)
	c.process.Stderr = os.Stderr
	if err := c.process.Start(); err != nil {
		return err
	}
	return c.Met()
}

// Met waits until the child has dialed the side channel, and reads its address. On stdio, the
// client must have started the child.
func (c *Child) Met() error {
	_ = c.listen.SetDeadline(time.Now().Add(answerTimeout))
	channel, err := c.listen.Accept()
	if err != nil {
		return fmt.Errorf("waiting for the server's side channel: %w", err)
	}
	c.channel, c.in = channel, json.NewDecoder(channel)
	var first hello
	if err := c.read(&first); err != nil {
		return err
	}
	if c.URL = first.URL; first.Unable != "" {
		return peer.Unable(first.Unable)
	}
	return nil
}

func (c *Child) read(v any) error {
	_ = c.channel.SetDeadline(time.Now().Add(answerTimeout))
	if err := c.in.Decode(v); err != nil {
		return fmt.Errorf("the server's side channel: %w", err)
	}
	return nil
}

// Used returns the usage of the child. If collect is set, the child first collects garbage.
func (c *Child) Used(collect bool) (u Usage, err error) {
	question := "n"
	if collect {
		question = "c"
	}
	if _, err := c.channel.Write([]byte(question)); err != nil {
		return u, err
	}
	return u, c.read(&u)
}

// Close ends the channel, and thereby the child.
func (c *Child) Close() error {
	c.listen.Close()
	if c.channel != nil {
		c.channel.Close()
	}
	var err error
	if c.process != nil {
		end := time.AfterFunc(answerTimeout, func() { _ = c.process.Process.Kill() })
		err = c.process.Wait()
		end.Stop()
	}
	os.RemoveAll(c.folder)
	return err
}
