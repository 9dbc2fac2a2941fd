// Command dowel-github serves issues and files of GitHub: package github says how.
package main

import (
	"context"
	"time"

	"github.com/dowel-mcp/dowel/servers/github"
	"github.com/dowel-mcp/dowel/servers/internal/program"
)

func main() {
	var o github.Options
	program.Main("dowel-github", "Serves issues and files of GitHub, with the token in GITHUB_TOKEN or GH_TOKEN, or of gh.", []program.Option{
		{Name: "url", Description: "of the API, such as https://github.example.com/api/v3/, default that of github.com", Set: func(value string) error {
			o.URL = value
			return nil
		}},
		{Name: "read-only", Description: "true removes the tools that write", Set: func(value string) error {
			o.ReadOnly = value == "true"
			return nil
		}},
		{Name: "poll", Description: "how often files with subscribers are compared for changes, default " + github.DefaultPoll.String(), Set: func(value string) (err error) {
			o.Poll, err = program.ParseInterval(value, time.Second)
			return err
		}},
	}, func(ctx context.Context) (program.Server, error) {
		o.Token = github.FindToken(ctx)
		return github.New(o)
	})
}
