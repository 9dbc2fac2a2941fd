package everything

import (
	"context"

	"github.com/dowel-mcp/dowel/server"
)

// Sum is the result of add.
type Sum struct {
	Sum float64 `json:"sum"`
}

func addBasics(s *server.Server) {
	server.Tool(s, "echo", "Returns the message.", func(_ context.Context, in struct {
		Message string `json:"message" doc:"What to return"`
	}) (string, error) {
		return in.Message, nil
	}, hints)

	server.Tool(s, "add", "Adds two numbers.", func(_ context.Context, in struct {
		A float64 `json:"a"`
		B float64 `json:"b"`
	}) (Sum, error) {
		return Sum{in.A + in.B}, nil
	}, hints)
}
