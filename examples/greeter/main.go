// Command greeter is the smallest server: one tool, on standard input and output.
package main

import (
	"context"
	"log"

	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

type greetInput struct {
	Name string `json:"name" doc:"The person to greet" minLength:"1"`
}

func greet(_ context.Context, in greetInput) (string, error) {
	return "Hello, " + in.Name + "!", nil
}

func main() {
	s := server.New("greeter", "1.0.0", nil)
	server.Tool(s, "greet", "Greets a person.", greet)
	if err := stdio.Serve(context.Background(), s); err != nil {
		log.Fatal(err)
	}
}
