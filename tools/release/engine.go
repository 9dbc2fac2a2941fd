package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// maxEngine is how many bytes the embedded NATS server may add to the stripped binary.
const maxEngine = 14_000_000

// serverStub has the part of package server that dowel uses, and does nothing. A binary with it
// lacks the embedded server and what only that links.
const serverStub = `package server

import (
	"errors"
	"net"
	"time"
)

type Options struct {
	ServerName                                            string
	DontListen, JetStream, NoSigs, NoLog, SyncAlways      bool
	StoreDir                                              string
	MaxPayload                                            int32
	JetStreamMaxMemory, JetStreamMaxStore                 int64
}

type Server struct{}

func NewServer(*Options) (*Server, error)                { return nil, errors.New("no embedded server") }
func (*Server) Start()                                   {}
func (*Server) ReadyForConnections(time.Duration) bool   { return false }
func (*Server) InProcessConn() (net.Conn, error)         { return nil, errors.New("no embedded server") }
func (*Server) Shutdown()                                {}
func (*Server) WaitForShutdown()                         {}
`

const serverModule = "github.com/nats-io/nats-server/v2"

// checkEngine reports how much the embedded NATS server adds to the stripped binary of a platform,
// and fails if it is more than maxEngine.
func (r *release) checkEngine(ctx context.Context, t target, scratch string) error {
	modfile, err := r.writeStubModule(ctx, scratch)
	if err != nil {
		return err
	}
	without := t
	without.binary = filepath.Join(scratch, t.fileName("without-engine"))
	if err := r.compile(ctx, without, "-modfile", modfile); err != nil {
		return fmt.Errorf("without the embedded NATS server (does serverStub have all that dowel uses?): %w", err)
	}
	all, err := os.Stat(t.binary)
	if err != nil {
		return err
	}
	rest, err := os.Stat(without.binary)
	if err != nil {
		return err
	}
	added := all.Size() - rest.Size()
	fmt.Fprintf(r.log, "%-14s %.1f MB of the binary is the embedded NATS server\n", t, float64(added)/1e6)
	if added > maxEngine {
		return fmt.Errorf("the embedded NATS server adds %.1f MB to the stripped binary for %s, at most %.1f are allowed", float64(added)/1e6, t, maxEngine/1e6)
	}
	return nil
}

// writeStubModule writes the stub, and a copy of go.mod that replaces the server by it.
func (r *release) writeStubModule(ctx context.Context, scratch string) (modfile string, err error) {
	folder := filepath.Join(scratch, "nats-server")
	if err := os.MkdirAll(filepath.Join(folder, "server"), 0o755); err != nil {
		return "", err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return "", err
	}
	modfile = filepath.Join(filepath.Dir(folder), "stub.mod")
	for from, to := range map[string]string{"go.mod": modfile, "go.sum": filepath.Join(filepath.Dir(folder), "stub.sum")} {
		data, err := os.ReadFile(filepath.Join(r.root, from))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			return "", err
		}
	}
	for name, text := range map[string]string{"go.mod": "module " + serverModule + "\n", "server/server.go": serverStub} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	_, err = r.output(ctx, nil, "go", "mod", "edit", "-replace", serverModule+"="+folder, modfile)
	return modfile, err
}
