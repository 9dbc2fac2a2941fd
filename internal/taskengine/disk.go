package taskengine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/gofrs/flock"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// startLimit bounds the start of the embedded server, which reads all records.
const startLimit = 2 * time.Minute

// maxPayload bounds a record in bytes.
const maxPayload = 64 << 20

// Disk is a [tasks.Store] in a folder that one process at a time uses. It starts its server with
// the first task, or with the first look at a folder that has tasks. Each change is on the disk
// before it is acknowledged.
type Disk struct {
	folder string
	fault  diskFault

	mu     sync.Mutex // guards the rest
	runner string     // of the first start, so that the tasks of this process stay its own
	engine *Engine
	recent *recentRecords
	server *server.Server
	conn   *nats.Conn
	lock   *flock.Flock
	closed bool
}

// OnDisk returns the store in a folder. It neither reads nor makes the folder yet. The caller must
// close the store.
func OnDisk(folder string) *Disk { return &Disk{folder: folder} }

// Create implements [tasks.Store].
func (d *Disk) Create(ctx context.Context, r *tasks.Record, most int) error {
	e, err := d.open(true)
	if err != nil {
		return err
	}
	if err = d.checkDisk(ctx, e, e.Create(ctx, r, most)); err == nil {
		d.recent.put(r)
		d.fault.noteStored()
	}
	return err
}

// Load implements [tasks.Store].
func (d *Disk) Load(ctx context.Context, id string) (*tasks.Record, error) {
	if !isID(id) { // it starts no server
		return nil, tasks.ErrUnknown
	}
	e, err := d.open(false)
	if err != nil {
		return nil, err
	}
	if r := d.recent.get(id); r != nil {
		return r, nil
	}
	drops := d.recent.dropCount()
	r, err := e.Load(ctx, id)
	if err = d.checkDisk(ctx, e, err); err == nil {
		d.recent.putLoaded(r, drops)
	}
	return r, err
}

// Replace implements [tasks.Store].
func (d *Disk) Replace(ctx context.Context, next *tasks.Record) error {
	e, err := d.open(false)
	if err != nil {
		return err
	}
	if err = d.checkDisk(ctx, e, e.Replace(ctx, next)); err == nil {
		d.recent.put(next)
		d.fault.noteStored()
	} else {
		d.recent.remove(next.ID)
	}
	return err
}

// List implements [tasks.Store].
func (d *Disk) List(ctx context.Context, owner string) ([]*tasks.Record, error) {
	e, err := d.open(false)
	if errors.Is(err, tasks.ErrUnknown) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return e.List(ctx, owner)
}

// ListTool implements [tasks.Store].
func (d *Disk) ListTool(ctx context.Context, tool string) ([]*tasks.Record, error) {
	d.mu.Lock()
	e := d.engine
	d.mu.Unlock()
	if e == nil { // a task of an earlier process is checked when it is asked for
		return nil, nil
	}
	return e.ListTool(ctx, tool)
}

// Runner implements [tasks.Store].
func (d *Disk) Runner() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runner
}

// IsGone implements [tasks.Store]. The lock of the folder says that no other process lives.
func (d *Disk) IsGone(runner string) bool { return runner != d.Runner() }

// Prepare implements [tasks.Store].
func (d *Disk) Prepare() error {
	_, err := d.open(true)
	return err
}

// Close implements [tasks.Store].
func (d *Disk) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.stop()
	return nil
}

// open returns the engine, and starts it if it does not run. Without create, it fails with
// [tasks.ErrUnknown] if the folder does not exist.
func (d *Disk) open(create bool) (*Engine, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, tasks.ErrClosed
	case d.engine != nil:
		return d.engine, nil
	}
	if _, err := os.Stat(d.folder); !create && errors.Is(err, os.ErrNotExist) {
		return nil, tasks.ErrUnknown
	}
	if err := d.start(); err != nil {
		d.stop()
		return nil, d.fault.note(fmt.Errorf("tasks cannot be kept in %s: %w", d.folder, err), false)
	}
	d.fault.noteStart()
	return d.engine, nil
}

// checkDisk returns the error of an operation. If the server has failed, as on a full disk,
// checkDisk ends it: it would store nothing any more. The next operation starts another one, with
// everything that was acknowledged.
func (d *Disk) checkDisk(ctx context.Context, e *Engine, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	for _, answer := range []error{tasks.ErrUnknown, tasks.ErrConflict, tasks.ErrTooMany, tasks.ErrTooLarge, tasks.ErrClosed} {
		if errors.Is(err, answer) {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.engine == e {
		d.stop()
	}
	return d.fault.note(fmt.Errorf("tasks cannot be kept in %s, whose disk may be full: %w", d.folder, err), true)
}

// start locks the folder and starts the server. d.mu is held.
func (d *Disk) start() (err error) {
	if err = os.MkdirAll(d.folder, 0o700); err != nil {
		return err
	}
	d.lock = flock.New(filepath.Join(d.folder, "lock"))
	if locked, err := d.lock.TryLock(); err != nil {
		return err
	} else if !locked {
		return errors.New("another process uses the folder")
	}
	d.server, err = server.NewServer(&server.Options{
		ServerName: "dowel", DontListen: true, JetStream: true, StoreDir: d.folder, SyncAlways: true, MaxPayload: maxPayload,
		JetStreamMaxStore: 2 * maxStored, JetStreamMaxMemory: 1, NoSigs: true, NoLog: true,
	})
	if err != nil {
		return err
	}
	go d.server.Start()
	if !d.server.ReadyForConnections(startLimit) {
		return errors.New("the embedded NATS server does not start")
	}
	d.conn, err = nats.Connect("", nats.InProcessServer(d.server), nats.MaxReconnects(0))
	if err != nil {
		return err
	}
	js, err := jetstream.New(d.conn)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	own := cmp.Or(d.runner, rand.Text())
	d.recent = newRecentRecords()
	if d.engine, err = Open(ctx, js, Options{Runner: own, IsGone: func(runner string) bool { return runner != own }}); err == nil {
		d.runner = own
	}
	return err
}

// stop ends the server, as far as it has started. d.mu is held.
func (d *Disk) stop() {
	d.engine = nil
	if d.conn != nil {
		d.conn.Close()
		d.conn = nil
	}
	if d.server != nil {
		d.server.Shutdown()
		d.server.WaitForShutdown()
		d.server = nil
	}
	if d.lock != nil {
		_ = d.lock.Close()
		d.lock = nil
	}
}
