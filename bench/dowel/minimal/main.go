// Command minimal is the smallest server that a user of dowel would write.
package main

import (
	"context"
	"log"

	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

type echo struct {
	Message string `json:"message" doc:"What to say"`
}

func main() {
	s := server.New("minimal", "1", nil)
	server.Tool(s, "echo", "Says it again.", func(_ context.Context, in echo) (string, error) { return in.Message, nil })
	if err := stdio.Serve(context.Background(), s); err != nil {
		log.Fatal(err)
	}
}
