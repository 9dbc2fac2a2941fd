// Command explore is a client. It connects to a server, lists its tools, and calls one of them with
// arguments in JSON:
//
//	explore [-call TOOL -arguments JSON] URL
//	explore [-call TOOL -arguments JSON] COMMAND [ARGUMENT...]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"

	"github.com/dowel-mcp/dowel/client"
)

func main() {
	tool := flag.String("call", "", "`tool` to call")
	arguments := flag.String("arguments", "{}", "its arguments, a `JSON` object")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("name a server: its URL or its command")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := explore(ctx, flag.Args(), *tool, *arguments); err != nil {
		log.Fatal(err)
	}
}

func explore(ctx context.Context, server []string, tool, arguments string) error {
	var target any = server // a command, started here and ended by Close
	if strings.Contains(server[0], "://") {
		target = server[0]
	}
	c, err := client.Dial(ctx, target, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Printf("%s speaks revision %s\n", c.Server().Info.Name, c.Server().Revision)
	for t, err := range c.Tools(ctx) { // asks for the next page when the loop reaches it
		if err != nil {
			return err
		}
		fmt.Printf("%-20s %s\n", t.Name, t.Description)
	}
	if tool == "" {
		return nil
	}
	text, err := client.Call[string](ctx, c, tool, json.RawMessage(arguments))
	if failed, ok := errors.AsType[*client.ToolError](err); ok {
		return fmt.Errorf("the tool reports: %w", failed)
	}
	if err != nil {
		return err
	}
	fmt.Println(text)
	return nil
}
