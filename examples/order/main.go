// Command order is a server with a tool that asks the user a question in the middle of a call. The
// same straight-line code works for clients of every protocol revision.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

type orderInput struct {
	Item string `json:"item" doc:"The article to order"`
}

// details is the form that the user fills in.
type details struct {
	Size string `json:"size" enum:"S,M,L"`
	Gift bool   `json:"gift" title:"Wrap it?" default:"false"`
}

func placeOrder(ctx context.Context, in orderInput) (string, error) {
	// Until the answer is there, Ask returns an error that sends the question. With the answer,
	// placeOrder runs again from its first line. Once keeps a step from running twice.
	number, err := server.Once(ctx, "number", func(context.Context) (int64, error) { return reserveNumber(), nil })
	if err != nil {
		return "", err
	}
	answer, err := server.Ask[details](ctx, "details", "How do you want the "+in.Item+"?")
	if errors.Is(err, server.ErrDeclined) {
		return "The order was cancelled.", nil
	}
	if err != nil {
		return "", err
	}
	wrapping := ""
	if answer.Gift {
		wrapping = ", wrapped as a gift"
	}
	return fmt.Sprintf("Order %d: one %s in size %s%s.", number, in.Item, answer.Size, wrapping), nil
}

// lastNumber counts the orders of this process.
var lastNumber atomic.Int64

func reserveNumber() int64 { return lastNumber.Add(1) }

func main() {
	s := server.New("order", "1.0.0", nil)
	server.Tool(s, "order", "Orders an article after asking for size and wrapping.", placeOrder)
	if err := stdio.Serve(context.Background(), s); err != nil {
		log.Fatal(err)
	}
}
