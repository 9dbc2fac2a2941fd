package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/internal/quota"
)

// ErrOwnServer is the error for a caller that was started by a server of the running dowel.
var ErrOwnServer = errors.New("refused, since a server of the running dowel, such as its shell, started this command: run it yourself in a terminal")

// callerKey is the key of the process behind a connection in its context.
type callerKey struct{}

// connections numbers the connections of unknown processes.
var connections atomic.Uint64

// ConnContext records the process behind a connection of the control socket; it is for
// [http.Server.ConnContext]. For the limits, each process is a client, and each connection if its
// process is unknown.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	pid := peerProcess(conn)
	client := quota.Client{Name: fmt.Sprint("process ", pid)}
	if pid == 0 {
		client = quota.Client{Name: fmt.Sprint("connection ", connections.Add(1)), Anonymous: true}
	}
	return quota.WithClient(context.WithValue(ctx, callerKey{}, pid), client)
}

// refuseOwnServers lets only callers change something that no server of this dowel has started. It
// knows the parents of processes on Linux only, and a process that has left its parent is not
// recognised: this keeps models from changing decisions by accident, but is not a security
// boundary.
func refuseOwnServers(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if pid, _ := r.Context().Value(callerKey{}).(int); pid > 0 && descendsFrom(pid, os.Getpid()) {
			writeOutcome(w, ErrOwnServer)
			return
		}
		next(w, r)
	}
}

// maxParents limits the walk to the parents of a process.
const maxParents = 100

// descendsFrom reports whether a process is a descendant of another one.
func descendsFrom(pid, ancestor int) bool {
	for range maxParents {
		if pid = parentOf(pid); pid == ancestor {
			return true
		}
		if pid <= 1 {
			return false
		}
	}
	return false
}
