package checks

import (
	"cmp"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/interop/peers/report"
)

// The carriers: names on a client's command line of the ways to reach a server.
const (
	Stdio = "stdio"
	HTTP  = "http" // Streamable HTTP
	SSE   = "sse"  // HTTP+SSE of 2024-11-05
	WS    = "ws"   // WebSocket
)

// Line is a client's parsed command line.
type Line struct {
	Version string   // the revision to ask for; the newest if it is empty
	Expect  string   // the revision that must be negotiated; Version if it is empty
	Carrier string   // Stdio, HTTP, SSE or WS
	Command []string // of the server, on stdio
	URL     string   // of the server, on other carriers
	Web     *Web     // the client must send all requests to URL through it
}

// Main is the main function of a client: it reads the command line, connects, runs the checks,
// closes, and ends the process.
//
//	NAME [-version REVISION] [-expect REVISION] [-without NAME,NAME] [-carrier stdio] COMMAND ARG...
//	NAME [-version REVISION] [-expect REVISION] [-without NAME,NAME] -carrier http|sse|ws URL
func Main(name string, connect func(Line, *Heard) (Client, error)) {
	line := Line{Web: &Web{}}
	flag.StringVar(&line.Version, "version", "", "the revision to ask for; the newest if it is empty")
	flag.StringVar(&line.Expect, "expect", "", "the revision that must be negotiated; by default that of -version")
	flag.StringVar(&line.Carrier, "carrier", Stdio, "stdio, http, sse or ws")
	without := flag.String("without", "", "comma-separated names of checks to leave out")
	flag.Parse()
	line.Command, line.URL = flag.Args(), flag.Arg(0)
	switch {
	case line.Carrier == Stdio && flag.NArg() > 0:
	case slices.Contains([]string{HTTP, SSE, WS}, line.Carrier) && flag.NArg() == 1:
	default:
		log.Fatalf("usage: %s [-version REVISION] [-expect REVISION] [-without NAME,NAME] [-carrier stdio|http|sse|ws] COMMAND ARG... | URL", name)
	}
	r := report.New(os.Stdout, strings.FieldsFunc(*without, func(c rune) bool { return c == ',' }))
	os.Exit(run(r, line, connect))
}

func run(r *report.Report, line Line, connect func(Line, *Heard) (Client, error)) (code int) {
	heard := &Heard{}
	var c Client
	r.Run("connect", func() (err error) {
		c, err = connect(line, heard)
		return err
	})
	if c == nil {
		return 1
	}
	r.Run("version", func() error {
		want := cmp.Or(line.Expect, line.Version)
		if got := c.Version(); want != "" && got != want {
			return fmt.Errorf("got %s, want %s", got, want)
		}
		return nil
	})
	Run(r, c, heard)
	version := c.Version()
	r.Run("close", c.Close)
	switch {
	case line.Carrier == SSE:
		r.Run("session end", line.Web.streamEnded)
	case line.Carrier == HTTP && version < modern:
		r.Run("session end", line.Web.sessionEnded)
	case line.Carrier == HTTP:
		r.Run("session end", line.Web.sessionless)
	}
	return r.Finish()
}
