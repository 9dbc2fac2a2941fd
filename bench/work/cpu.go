package work

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/bench/peers"
	"github.com/dowel-mcp/dowel/bench/side"
)

// cpus measures the processor time and the allocations of the server's process alone. A client
// without an SDK sends the same bytes to all servers.
func cpus() (items []Item) {
	for _, way := range []struct {
		name, title string
		width       int
		rivals      float64
		connect     func(*side.Child, peer.Era, int) (exchange, error)
	}{
		{"stdio", "stdio, one at a time", 1, 5, rawStdio},
		{"stdio", "stdio, 64 at once", 64, 5, rawStdio},
		{"http", "HTTP, one at a time", 1, 3, rawHTTP},
	} {
		for _, era := range []peer.Era{peer.Modern, peer.Legacy} {
			items = append(items, Item{
				Name:        fmt.Sprintf("cpu/%s/%s/%d", way.name, era, way.width),
				Table:       "Processor time of the server alone, for a small call",
				Rows:        []Row{{way.title + ", " + string(era), CPU, Bound{Rivals: way.rivals}}},
				Contestants: contestants(),
				Measure: func(_ context.Context, contestant string, o Options) (Result, error) {
					p, err := peers.Named(contestant)
					if err != nil {
						return nil, err
					}
					s := side.Options{Peer: p, Era: era, HTTP: way.name == "http"}
					return measureServer(s, way.width, o.withDefaults(), way.connect)
				},
			})
		}
	}
	return items
}

// exchange is a connection to a server in a child process. calls sends calls and reads their
// answers, and may be repeated.
type exchange struct {
	calls func() error
	end   func() error
}

func measureServer(s side.Options, width int, o Options, connect func(*side.Child, peer.Era, int) (exchange, error)) (r Result, err error) {
	server, err := side.New(s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	x, err := connect(server, s.Era, width)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.end()) }()
	r, err = o.repeat(1, func() (side.Usage, error) { return server.Used(false) }, x.calls)
	for figure := range r {
		r[figure] /= float64(width)
	}
	return r, err
}

// rawStdio returns an exchange over stdio. It writes width calls at once, and then reads the
// answers.
func rawStdio(server *side.Child, era peer.Era, width int) (x exchange, err error) {
	cmd := exec.Command(server.Args[0], server.Args[1:]...)
	cmd.Stderr = os.Stderr
	out, err1 := cmd.StdinPipe()
	from, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start(), server.Met()); err != nil {
		return x, err
	}
	in, calls := bufio.NewReaderSize(from, 64<<10), ""
	for id := range width {
		calls += callOf(era, id+2) + "\n"
	}
	x.end = func() error { return errors.Join(out.Close(), cmd.Wait()) }
	x.calls = func() error {
		_, err := io.WriteString(out, calls)
		for range width {
			answer, err1 := in.ReadSlice('\n')
			if err := errors.Join(err, err1); err != nil {
				return err
			}
			if err := echoed(answer); err != nil {
				return err
			}
		}
		return err
	}
	if era == peer.Legacy {
		err = shake(out, in)
	}
	return x, err
}

// shake makes the handshake of the legacy era.
func shake(out io.Writer, in *bufio.Reader) error {
	if _, err := io.WriteString(out, initialize+"\n"); err != nil {
		return err
	}
	if _, err := in.ReadSlice('\n'); err != nil {
		return err
	}
	_, err := io.WriteString(out, initialized+"\n")
	return err
}

func rawHTTP(server *side.Child, era peer.Era, _ int) (x exchange, err error) {
	c, err := dialRaw(server.URL)
	if err != nil {
		return x, err
	}
	fields := modernFields("tools/call") + "Mcp-Name: echo\r\n"
	if era == peer.Legacy {
		id, err := c.session()
		if err != nil {
			return x, err
		}
		fields = legacyFields(id)
	}
	call := request(http.MethodPost, fields, callOf(era, 2))
	x.end = c.Close
	x.calls = func() error {
		_, answer, err := c.do(call)
		if err != nil {
			return err
		}
		return echoed(answer)
	}
	return x, nil
}
