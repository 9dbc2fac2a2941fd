package builtin_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/builtin"
)

func ExampleNew() {
	ctx := context.Background()
	opts, err := builtin.ParseOptions([]string{"memory=true"})
	if err != nil {
		log.Fatal(err)
	}
	s, err := builtin.New("kv", opts)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	c, err := client.Dial(ctx, s, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	for _, pair := range []map[string]string{{"key": "tea", "value": "green"}, {"key": "tea/milk", "value": "no"}} {
		if _, err := client.Call[string](ctx, c, "set", pair); err != nil {
			log.Fatal(err)
		}
	}
	for r, err := range c.Resources(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		contents, err := c.ReadResource(ctx, r.URI)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.URI, contents.Contents[0].Text)
	}
	// Output:
	// kv://tea green
	// kv://tea%2Fmilk no
}
