package natstest

import (
	"testing"

	"github.com/dowel-mcp/dowel/internal/freeport"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Restartable returns a function that starts a server. Each call uses the same folder and the same
// port, so that a server that was stopped comes back with its streams. Each change may change the
// options of that one start.
func Restartable(t testing.TB) (start func(changes ...func(*server.Options)) *server.Server) {
	t.Helper()
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return func(changes ...func(*server.Options)) *server.Server {
		t.Helper()
		return Start(t, func(o *server.Options) {
			o.StoreDir, o.Port = dir, port
			for _, change := range changes {
				change(o)
			}
		})
	}
}

// Connect connects to the JetStream of a server until the test ends.
func Connect(t testing.TB, s *server.Server) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	conn, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return conn, js
}
