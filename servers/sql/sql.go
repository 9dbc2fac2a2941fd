// Package sql is an MCP server for a PostgreSQL database. It only reads.
//
// Its tools are query and explain. Each table, view and materialized view that the user may read is
// a resource postgres:///{schema}/{table} with its columns, keys, indexes and comments. Clients
// complete the names, and clients that listen are notified when the schema changes.
//
// # What protects the database
//
// The database itself enforces the limits. Each call is a read-only transaction, which no statement
// can make writable again, with a statement_timeout. A query is a cursor, which PostgreSQL allows
// for SELECT and VALUES only, and at most [MaxRows] rows are fetched from it. The server has all
// other permissions of its user: connect as a user that may read no secrets, and that is no
// superuser.
package sql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Limits of a result.
const (
	MaxRows    = 1000
	maxResult  = 512 << 10 // bytes of all cells
	maxCell    = 16 << 10  // bytes of a cell
	maxMessage = 8 << 20   // bytes of a row, as PostgreSQL sends it
)

// maxConnections bounds the calls that run at the same time. Others wait.
const maxConnections = 4

// Defaults of [Options].
const (
	DefaultTimeout = 30 * time.Second
	DefaultPoll    = 30 * time.Second
)

// Version is the version that the server reports.
const Version = "1.0.0"

// Options configure a [Server].
type Options struct {
	// URL is the address of the database, such as postgres://reader@localhost/shop.
	URL string
	// Timeout bounds each statement. The default is [DefaultTimeout].
	Timeout time.Duration
	// Poll is how often the schema is compared for changes. The default is [DefaultPoll].
	Poll time.Duration
}

// Server is a [server.Server] of a database. Call Close to release its connections.
type Server struct {
	*server.Server
	pool    *pgxpool.Pool
	timeout time.Duration
	stop    context.CancelFunc
	polling sync.WaitGroup
}

// New returns a server of the database. It does not connect before the first call.
func New(ctx context.Context, o Options) (*Server, error) {
	if o.URL == "" {
		return nil, errors.New("no database is named: want url=postgres://USER@HOST/DATABASE, or the variable DATABASE_URL")
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Poll <= 0 {
		o.Poll = DefaultPoll
	}
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, err // its text hides the password
	}
	config.MaxConns = maxConnections
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
	config.ConnConfig.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		frontend := pgproto3.NewFrontend(r, w)
		frontend.SetMaxBodyLen(maxMessage)
		return frontend
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	s := &Server{
		Server: server.New("sql", Version, &server.Options{
			Instructions: "A PostgreSQL database that you can only read. Read the resources of the tables before you write SQL.",
			Declare:      []server.Kind{server.KindResource},
		}),
		pool: pool, timeout: o.Timeout, stop: stop,
	}
	server.Tool(s.Server, "query", "Runs one SELECT of PostgreSQL and returns its rows.", s.queryRows,
		server.ToolOptions{Title: "Query the database", Annotations: mcp.ReadOnly})
	server.Tool(s.Server, "explain", "Returns PostgreSQL's plan of a SELECT, with its estimated costs, without running it.", s.explainQuery,
		server.ToolOptions{Title: "Explain a query", Annotations: mcp.ReadOnly})
	s.addResources()
	s.polling.Go(func() { s.pollSchema(ctx, o.Poll) })
	return s, nil
}

// Close ends all subscriptions and closes the connections.
func (s *Server) Close() error {
	s.stop()
	s.polling.Wait()
	err := s.Server.Close()
	s.pool.Close()
	return err
}

// readDatabase runs fn in a read-only transaction with the time limit.
func (s *Server) readDatabase(ctx context.Context, fn func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		// A transaction cannot become writable once it has read something: this is the first read.
		timeout := fmt.Sprint(s.timeout.Milliseconds())
		if _, err := tx.Exec(ctx, "SELECT set_config('statement_timeout', $1, true)", timeout); err != nil {
			return err
		}
		return fn(tx)
	})
}
