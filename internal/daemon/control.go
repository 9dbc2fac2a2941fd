package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/taskengine"
	"github.com/dowel-mcp/dowel/internal/version"
)

// Files returns the paths of the configuration files that were read.
func (d *Daemon) Files() (found []string) {
	for _, f := range d.source.Set().Files {
		if !f.Missing {
			found = append(found, f.Path)
		}
	}
	return found
}

// Status implements [control.Controller].
func (d *Daemon) Status() control.Status {
	folder, _ := os.Getwd()
	s := control.Status{PID: os.Getpid(), Folder: folder, Version: version.Number(), Started: d.started, Files: d.Files(), Limits: control.LimitsOf(d.quota), Servers: control.DescribeAll(d.Hub)}
	s.Ending = d.ending.Load()
	s.Goroutines, s.HeapBytes = runtime.NumGoroutine(), liveHeap()
	s.Cluster, s.Tasks = d.clusterState(), d.taskFault()
	for _, p := range d.source.Set().Problems {
		if p.Server == "" && p.Severity == config.Error {
			s.Problems = append(s.Problems, p.Text())
		}
	}
	if w := d.Web.Load(); w != nil {
		s.Gateway, s.Open = w.Url+"/mcp", w.Open
		s.TemporaryToken = d.access.HasTemporaryToken()
	}
	return s
}

// taskFault says why the last task could not be kept on this machine. It starts no engine.
func (d *Daemon) taskFault() *control.TaskFault {
	store, ok := d.tasks.(*taskengine.Disk)
	if !ok {
		return nil
	}
	fault, when := store.Fault()
	if fault == nil {
		return nil
	}
	return &control.TaskFault{Problem: fault.Error(), Time: when}
}

// liveHeap returns the bytes of heap objects that the last garbage collection has found in use.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}

// Reload implements [control.Controller].
func (d *Daemon) Reload(context.Context) error {
	set := d.source.Load("requested by the user")
	var errs []error
	for _, p := range set.Problems {
		if p.Server == "" && p.Severity == config.Error {
			errs = append(errs, p)
		}
	}
	return errors.Join(errs...)
}

// Yield implements [control.Controller]. A daemon that serves a single client over stdio makes room
// for the caller; any other daemon refuses.
func (d *Daemon) Yield(context.Context) error {
	if !d.singleClient {
		return errors.New("dowel serves other clients too")
	}
	d.yieldOnce.Do(func() { close(d.yielded) })
	return nil
}

// RequestStop implements [control.Controller]. A daemon that a client started over stdio refuses:
// it ends with its client, which would lose its server.
func (d *Daemon) RequestStop(context.Context) error {
	if d.options.Stdio {
		return fmt.Errorf("a client started the running dowel, process %d, as its server with dowel up --stdio: it ends when you close the client", os.Getpid())
	}
	d.stopOnce.Do(func() { close(d.stopRequested) })
	return nil
}

// StopRequested returns a channel that is closed when another process has asked this daemon to end.
// The owner of the daemon must then call [Daemon.Stop].
func (d *Daemon) StopRequested() <-chan struct{} { return d.stopRequested }

// Do implements [control.Controller].
func (d *Daemon) Do(ctx context.Context, name, verb string) error {
	u := d.Hub.Upstream(name)
	if u == nil {
		return fmt.Errorf("%w: %s%s", control.ErrNoServer, name, suggest.Hint(name, d.serverNames()))
	}
	switch verb {
	case "enable":
		return d.source.Enable(name, true)
	case "disable":
		return d.source.Enable(name, false)
	case "restart":
		return d.restartEverywhere(ctx, u)
	}
	return fmt.Errorf("unknown action %q: want enable, disable or restart", verb)
}

func (d *Daemon) serverNames() (names []string) {
	for _, u := range d.Hub.Upstreams() {
		names = append(names, u.Name())
	}
	return names
}
