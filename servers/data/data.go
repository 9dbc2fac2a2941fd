// Package data is an MCP server for tables in files: CSV, TSV, JSON lines and Parquet.
//
// Its tools are analyze_csv, query and chart, and the arithmetic of sum, subtract, multiply, divide
// and mean. Each file is a resource data:///{+path} that describes its columns. The files are
// inside some folders, the roots; neither ".." nor a symbolic link leads out of them.
//
// A file is read row by row and never as a whole. An analysis keeps sketches of bounded size; a
// query runs in SQLite, which sorts in temporary files. [Options] bound time, the constants below
// bound memory: a call needs less than 100 MiB, and maxRunning calls run at the same time.
//
// # Values
//
// A cell of a text file is an integer, a number or text, by its form. An empty cell is missing,
// which is NULL in SQL. Digits behind a leading zero are text, and so are integers that exceed 64
// bits. Spaces around a cell are left out, and a line break in a cell is "\n". Bytes that are not
// UTF-8 and NUL become U+FFFD.
package data

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// Limits of a file. A row that exceeds maxRow is an error, since it may be a quote that is never
// closed.
const (
	maxRow     = 4 << 20 // bytes
	maxColumns = 1000
)

// maxRunning bounds the number of calls that read files at the same time. Others wait.
const maxRunning = 1

// DefaultTimeout is the default of [Options.Timeout].
const DefaultTimeout = 10 * time.Minute

// Version is the version that the server reports.
const Version = "1.0.0"

// Options configure a [Server]. The zero value is ready.
type Options struct {
	// Roots are the folders that clients may use. They must exist. The default is the working
	// folder.
	Roots []string
	// Timeout bounds the time of a call. The default is [DefaultTimeout].
	Timeout time.Duration
	// Poll is how often the files of the first root are compared for changes. The default is
	// [DefaultPoll].
	Poll time.Duration
	// TempSize bounds the bytes of the temporary files of a query. The default is 4 GiB.
	TempSize int64
}

// Server is a [server.Server] of the files in its roots. Call Close to release the roots.
type Server struct {
	*server.Server
	roots   roots
	opts    Options
	running chan struct{} // holds a value for each running call
	stop    context.CancelFunc
	polling sync.WaitGroup
}

// New opens the roots and returns a server. It fails if a root is not a folder.
func New(opts Options) (*Server, error) {
	if opts.Timeout <= 0 {
		opts.Timeout = DefaultTimeout
	}
	if opts.Poll <= 0 {
		opts.Poll = DefaultPoll
	}
	if opts.TempSize <= 0 {
		opts.TempSize = 4 << 30
	}
	all, err := openRoots(opts.Roots)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{
		Server: server.New("data", Version, &server.Options{
			Instructions: "Tables in files. Call analyze_csv first: it says which columns a file has and what they hold. Then call query with SQL.",
		}),
		roots: all, opts: opts, running: make(chan struct{}, maxRunning), stop: stop,
	}
	server.Tool(s.Server, "analyze_csv", "Summarizes each column of a CSV, TSV, JSON lines or Parquet file: type, missing values, quantiles, most frequent values.",
		s.analyzeFile, server.ToolOptions{Title: "Analyze a table", Annotations: mcp.ReadOnly})
	server.Tool(s.Server, "query", queryDescription,
		s.queryFiles, server.ToolOptions{Title: "Query tables with SQL", Annotations: mcp.ReadOnly})
	server.Tool(s.Server, "chart", "Draws the first two columns of a query's result, labels and numbers, as an SVG image. "+queryDescription,
		s.chartQuery, server.ToolOptions{Title: "Draw a chart", Annotations: mcp.ReadOnly})
	addArithmetic(s.Server)
	s.addResources()
	s.polling.Go(func() { s.pollFiles(ctx, opts.Poll) })
	return s, nil
}

// Close ends all subscriptions and closes the roots.
func (s *Server) Close() error {
	s.stop()
	s.polling.Wait()
	return errors.Join(s.Server.Close(), s.roots.closeAll())
}

// runJob runs fn with the time limit, after the calls that came before it.
func (s *Server) runJob(ctx context.Context, fn func(context.Context) error) error {
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	case <-ctx.Done():
		return ctx.Err()
	}
	bounded, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	err := fn(bounded)
	if bounded.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("the call took longer than %v: read fewer columns or files, or start the server with a longer timeout", s.opts.Timeout)
	}
	return err
}
