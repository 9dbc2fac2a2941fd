// Command dowel-screen serves pictures of the screen: package screen says how.
package main

import (
	"context"
	"time"

	"github.com/dowel-mcp/dowel/servers/internal/program"
	"github.com/dowel-mcp/dowel/servers/screen"
)

func main() {
	var o screen.Options
	program.Main("dowel-screen", "Serves pictures of the screen. It asks the user before each one.", []program.Option{
		{Name: "--allow", Description: "takes pictures without asking", Set: func(string) error {
			o.Allow = true
			return nil
		}},
		{Name: "poll", Description: "with --allow, how often the screen is compared for changes while a client is subscribed, default " + screen.DefaultPoll.String(), Set: func(value string) (err error) {
			o.Poll, err = program.ParseInterval(value, 100*time.Millisecond)
			return err
		}},
	}, func(context.Context) (program.Server, error) { return screen.New(o), nil })
}
