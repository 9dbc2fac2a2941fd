package auth_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"testing"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// exampleTB lets an example start the servers of a test.
type exampleTB struct {
	testing.TB
	end []func()
}

func (*exampleTB) Helper()            {}
func (e *exampleTB) Cleanup(f func()) { e.end = append(e.end, f) }

// startNotes starts a server that wants a login.
func startNotes() (url string, as *authtest.Server, end func()) {
	t := &exampleTB{}
	as = authtest.Start(t, nil)
	rs := as.Protect(t, streamable.Handler(newServer(), nil))
	return rs.URL, as, func() {
		for _, f := range t.end {
			f()
		}
	}
}

func Example() {
	url, as, end := startNotes() // stands for a server and its authorization server
	defer end()
	ctx := context.Background()
	t, err := auth.NewTransport(url, &auth.Options{Login: approve(as)}) // or a desktop.Login, with the user's browser
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.Dial(ctx, url, &client.Options{HTTP: client.HTTP{Client: &http.Client{Transport: t}}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Println(client.Call[string](ctx, c, "greet", map[string]string{"Name": "Ada"}))
	// Output: Hello, Ada <nil>
}

// Without a user, the error says that one is needed.
func ExampleNeedsLogin() {
	url, _, end := startNotes()
	defer end()
	t, err := auth.NewTransport(url, nil)
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Dial(context.Background(), url, &client.Options{HTTP: client.HTTP{Client: &http.Client{Transport: t}}})
	var needs *auth.NeedsLogin
	fmt.Println(errors.As(err, &needs))
	// Output: true
}
