package natstest

import (
	"net"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Restartable returns a function that starts a server. Each call uses the same folder and the port
// of the first, so that a server that was stopped comes back with its streams. Each change may
// change the options of that one start.
func Restartable(t testing.TB) (start func(changes ...func(*server.Options)) *server.Server) {
	t.Helper()
	dir, port := t.TempDir(), 0
	return func(changes ...func(*server.Options)) *server.Server {
		t.Helper()
		s := Start(t, func(o *server.Options) {
			if o.StoreDir = dir; port != 0 {
				o.Port = port
			}
			for _, change := range changes {
				change(o)
			}
		})
		port = s.Addr().(*net.TCPAddr).Port
		return s
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
