package wiretest_test

import (
	"fmt"

	"github.com/dowel-mcp/dowel/internal/wiretest"
)

func ExampleChecker() {
	c := wiretest.NewChecker(wiretest.Options{Revision: "2025-11-25"})
	c.Frame(wiretest.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	for _, err := range c.Frame(wiretest.Server, []byte(`{"jsonrpc":"2.0","id":2,"result":{}}`)) {
		fmt.Println(err)
	}
	fmt.Println("open:", c.Open(wiretest.Client))
	// Output:
	// response-id: server: no request has the id 2 in "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}"
	// open: [1]
}
