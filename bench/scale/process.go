//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dowel-mcp/dowel/internal/freeport"
	"github.com/dowel-mcp/dowel/internal/programtest"
	"github.com/nats-io/nats-server/v2/server"
)

// startLimit bounds the start and the end of a process.
const startLimit = 2 * time.Minute

// A process is a child process. Its owner must stop it.
type process struct {
	cmd   *exec.Cmd
	ready string // what the pattern found in the line that says that it is ready
	ended chan struct{}
}

// startProcess starts a command and waits until it prints a line that the pattern matches.
func startProcess(ctx context.Context, cmd *exec.Cmd, pattern *regexp.Regexp) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() { _ = cmd.Wait(); in.Close(); close(p.ended) }()
	ready := make(chan string, 1)
	var printed strings.Builder
	go func() {
		defer close(ready)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if found := pattern.FindString(lines.Text()); found != "" {
				ready <- found
				_, _ = io.Copy(io.Discard, out)
				return
			}
			printed.WriteString(lines.Text() + "\n")
		}
	}()
	timer := time.NewTimer(startLimit)
	defer timer.Stop()
	var err error
	select {
	case found, ok := <-ready:
		if p.ready = found; ok {
			return p, nil
		}
		err = fmt.Errorf("%s has ended:\n%s", cmd.Path, printed.String())
	case <-timer.C:
		err = fmt.Errorf("%s was not ready in %v", cmd.Path, startLimit)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return nil, errors.Join(err, p.stop())
}

// stop ends the process, as the user does, and waits until it has ended.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(startLimit, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	<-p.ended
	return nil
}

// resident returns the memory of the process in bytes.
func (p *process) resident() (float64, error) {
	size, err := programtest.ResidentMemory(p.cmd.Process.Pid)
	return float64(size), err
}

// processorTime returns the processor time that the process has used.
func (p *process) processorTime() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name may have spaces
	fields := strings.Fields(after)
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	const tick = time.Second / 100 // USER_HZ of Linux
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}

// natsVariable has the configuration of the NATS server that this program runs instead of
// measuring.
const natsVariable = "DOWEL_SCALE_NATS"

type natsConfig struct {
	Port, Monitor int
	Folder        string
}

func runNATS(text string) {
	var c natsConfig
	err := json.Unmarshal([]byte(text), &c)
	var s *server.Server
	if err == nil {
		s, err = server.NewServer(&server.Options{Host: "127.0.0.1", Port: c.Port, HTTPHost: "127.0.0.1", HTTPPort: c.Monitor,
			JetStream: true, StoreDir: c.Folder, NoLog: true})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s.Start()
	if s.ReadyForConnections(startLimit) {
		fmt.Println("READY")
	}
	s.WaitForShutdown()
}

// natsServer is a NATS server in a process of its own.
type natsServer struct {
	*process
	config natsConfig
}

func startNATS(ctx context.Context, folder string) (*natsServer, error) {
	ports, err := freeport.FindAll(2)
	if err != nil {
		return nil, err
	}
	n := &natsServer{config: natsConfig{ports[0], ports[1], folder}}
	text, err := json.Marshal(n.config)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), natsVariable+"="+string(text))
	if n.process, err = startProcess(ctx, cmd, regexp.MustCompile("READY")); err != nil {
		return nil, err
	}
	return n, nil
}

func (n *natsServer) url() string { return fmt.Sprintf("nats://127.0.0.1:%d/scale", n.config.Port) }

// natsCounts are counters of a NATS server since its start, and its connections.
type natsCounts struct {
	In          float64 `json:"in_msgs"` // messages to the server
	Out         float64 `json:"out_msgs"`
	Connections float64 `json:"connections"`
}

func (n *natsServer) counts() (c natsCounts, err error) {
	resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/varz", n.config.Monitor))
	if err != nil {
		return c, err
	}
	defer resp.Body.Close()
	return c, json.NewDecoder(resp.Body).Decode(&c)
}

// stored returns the bytes on the disk.
func (n *natsServer) stored() (total float64, err error) {
	err = filepath.WalkDir(n.config.Folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return ignoreMissing(err)
		}
		info, err := entry.Info()
		if err == nil {
			total += float64(info.Sys().(*syscall.Stat_t).Blocks) * 512
		}
		return ignoreMissing(err)
	})
	return total, err
}

// ignoreMissing ignores the error of a file that the server has just removed.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
