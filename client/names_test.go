package client_test

import (
	"context"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// What the caller names must follow the protocol's grammar, or the caller gets the error.
func TestNamesOfCallers(t *testing.T) {
	t.Parallel()
	c := connect(t, tools(returns(done)))
	_, err := client.Call[string](context.Background(), c, "t", nil, client.CallOptions{Meta: mcp.Meta{"-bad key!": 1}})
	if err == nil || !strings.Contains(err.Error(), `CallOptions.Meta: "-bad key!" is not a key of _meta`) {
		t.Errorf("got %v", err)
	}
	if _, err := client.Call[string](context.Background(), c, "t", nil, client.CallOptions{Meta: mcp.Meta{"com.example/trace": 1}}); err != nil {
		t.Error(err)
	}
	_, err = client.Dial(context.Background(), tools(returns(done)), &client.Options{Extensions: []mcp.Extension{{ID: "jobs"}}})
	if err == nil || !strings.Contains(err.Error(), `dial: the extension "jobs" has no valid identifier`) {
		t.Errorf("got %v", err)
	}
}
