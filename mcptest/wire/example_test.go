package wire_test

import (
	"fmt"

	"github.com/dowel-mcp/dowel/mcptest/wire"
)

func ExampleChecker() {
	c := wire.NewChecker(wire.Options{Revision: "2025-11-25"})
	c.Frame(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	for _, err := range c.Frame(wire.Server, []byte(`{"jsonrpc":"2.0","id":2,"result":{}}`)) {
		fmt.Println(err)
	}
	fmt.Println("open:", c.Open(wire.Client))
	// Output:
	// response-id: server: no request has the id 2 in "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}"
	// open: [1]
}
