package side

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/bench/peers"
)

// Command is the first argument of this binary when it runs as a server for a [Child].
const Command = "serve"

// hello is the first line that a server writes to the side channel.
type hello struct {
	URL    string // the server's address; empty on stdio
	Unable string // why the peer cannot serve this; empty if it can
}

// Serve runs such a server. args are the arguments after Command. The process exits when the side
// channel is closed.
func Serve(args []string) error {
	flags := flag.NewFlagSet(Command, flag.ContinueOnError)
	name := flags.String("peer", "", "")
	socket := flags.String("side", "", "")
	overHTTP := flags.Bool("http", false, "")
	era := flags.String("era", string(peer.Modern), "")
	stream := flags.Bool("stream", false, "")
	tools := flags.Int("tools", 1, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	p, err := peers.Named(*name)
	if err != nil {
		return err
	}
	channel, err := net.Dial("unix", *socket)
	if err != nil {
		return fmt.Errorf("the side channel: %w", err)
	}
	s := p.NewServer(*tools)
	if *overHTTP {
		return serveHTTP(channel, s, peer.Era(*era), *stream)
	}
	go answer(channel, hello{})
	return s.Stdio(context.Background())
}

func serveHTTP(channel net.Conn, s peer.Server, era peer.Era, stream bool) error {
	h, err := s.Handler(era, stream)
	if unable := peer.Unable(""); errors.As(err, &unable) {
		answer(channel, hello{Unable: string(unable)})
	}
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go answer(channel, hello{URL: fmt.Sprintf("http://%s/mcp", l.Addr())})
	return http.Serve(l, h)
}

// answer writes first and then the usage of this process for each byte read, until the channel
// ends. A byte 'c' asks for a garbage collection before.
func answer(channel net.Conn, first hello) {
	out, in := json.NewEncoder(channel), bufio.NewReader(channel)
	err := out.Encode(first)
	for err == nil {
		var question byte
		if question, err = in.ReadByte(); err == nil {
			err = out.Encode(Used(question == 'c'))
		}
	}
	os.Exit(0)
}
