// Command dowel-sql serves a PostgreSQL database for reading: package sql says how.
package main

import (
	"context"
	"os"
	"time"

	"github.com/dowel-mcp/dowel/servers/internal/program"
	"github.com/dowel-mcp/dowel/servers/sql"
)

func main() {
	o := sql.Options{URL: os.Getenv("DATABASE_URL")}
	program.Main("dowel-sql", "Serves the schema of a PostgreSQL database, and queries that only read.", options(&o),
		func(ctx context.Context) (program.Server, error) { return sql.New(ctx, o) })
}

// options are the options of the command line, which set o.
func options(o *sql.Options) []program.Option {
	return []program.Option{
		{Name: "url", Description: "such as postgres://reader@localhost/shop, default $DATABASE_URL, which hides a password", Set: func(value string) error {
			o.URL = value
			return nil
		}},
		{Name: "timeout", Description: "of each statement, default " + sql.DefaultTimeout.String(), Set: func(value string) (err error) {
			o.Timeout, err = program.ParseInterval(value, 100*time.Millisecond)
			return err
		}},
		{Name: "poll", Description: "how often the schema is compared for changes, default " + sql.DefaultPoll.String(), Set: func(value string) (err error) {
			o.Poll, err = program.ParseInterval(value, time.Second)
			return err
		}},
	}
}
