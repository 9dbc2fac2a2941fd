// Command onegate puts several servers behind one HTTP address: a hub keeps them running, and a
// gateway serves everything that they offer. Here both servers live in this process; a target may
// also be a command or a URL. Enter prints a link to the console, which shows the servers and the
// calls of all clients.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/dowel-mcp/dowel/console"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

func newClock() *server.Server {
	s := server.New("clock", "1.0.0", nil)
	server.Tool(s, "now", "Tells the time.", func(context.Context, struct{}) (string, error) {
		return time.Now().Format(time.RFC3339), nil
	})
	return s
}

func newCalculator() *server.Server {
	s := server.New("calculator", "1.0.0", nil)
	server.Tool(s, "add", "Adds two numbers.", func(_ context.Context, in struct {
		A float64 `json:"a"`
		B float64 `json:"b"`
	}) (float64, error) {
		return in.A + in.B, nil
	})
	return s
}

func main() {
	address := flag.String("http", "127.0.0.1:8080", "`address` to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	h := hub.New(nil)
	defer h.Close()
	page := console.New(ctx, h, nil) // before the servers start, so that it sees all their messages
	h.Apply([]hub.Definition{
		{Name: "clock", Target: newClock()},
		{Name: "calculator", Target: newCalculator()},
	}, "the program starts")
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	base := "http://" + listener.Addr().String()
	fmt.Println(base + "/mcp")
	fmt.Println(page.LoginURL(base))
	go func() { // a link counts once, and for a minute
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			fmt.Println(page.LoginURL(base))
		}
	}()
	mux := http.NewServeMux()
	mux.Handle("/console/", page)
	mux.Handle("/mcp", page.Record(gateway.New(h, nil), func(g mcp.Handler) http.Handler { return streamable.Handler(g, nil) }))
	web := &http.Server{Handler: mux}
	go func() {
		<-ctx.Done()
		web.Close()
	}()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		log.Print(err)
	}
}
