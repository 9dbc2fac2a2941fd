// Command replicas is a coffee bar that runs as several processes behind a load balancer. Each
// request of a client may reach another process: its questions, its sessions and its tasks belong
// to all.
//
//	nats-server -js &
//	go run ./examples/replicas -http 127.0.0.1:8081 &
//	go run ./examples/replicas -http 127.0.0.1:8082
//
// Let nginx, or another balancer, send clients to both.
package main

import (
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

	"github.com/dowel-mcp/dowel/cluster"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// orderCoffee asks the user. The answer may reach another process than the question came from.
func orderCoffee(ctx context.Context, _ struct{}) (string, error) {
	size, err := server.Ask[string](ctx, "size", "Small or large?")
	if errors.Is(err, server.ErrDeclined) {
		return "No coffee.", nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("A %s coffee from process %d.", size, os.Getpid()), nil
}

// brewCoffee runs as a task. If its process ends, another one brews again.
func brewCoffee(ctx context.Context, _ struct{}) (string, error) {
	for second := range 3 {
		server.Progress(ctx, float64(second), 3, "brewing")
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return "The coffee is ready.", nil
}

func main() {
	address := flag.String("http", "127.0.0.1:8081", "`address` to listen on")
	nats := flag.String("nats", "nats://127.0.0.1:4222/coffee", "`URL` of the cluster: the same for all processes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	joined, err := cluster.Open(ctx, *nats, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer joined.Close()
	bar := server.New("coffee", "1.0.0", &server.Options{Keys: joined.Keys()}) // the keys are all it takes
	defer bar.Close()
	server.Tool(bar, "order", "Orders a coffee.", orderCoffee)
	server.Tool(bar, "brew", "Brews a coffee.", brewCoffee, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, Takeover: true}})
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	serve(ctx, listener, streamable.Handler(bar, nil))
}

// serve serves until ctx ends, and then answers the calls in flight.
func serve(ctx context.Context, l net.Listener, endpoint *streamable.Server) {
	mux := http.NewServeMux()
	mux.Handle("/mcp", endpoint)
	web := &http.Server{Handler: mux}
	go func() {
		<-ctx.Done()
		limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = endpoint.Shutdown(limit)
		web.Close()
	}()
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		log.Print(err)
	}
}
