package sql

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/jackc/pgx/v5"
)

// uriPrefix begins the URI of each table.
const uriPrefix = "postgres:///"

// Table describes a table or view.
type Table struct {
	Schema  string   `json:"schema"`
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	Comment string   `json:"comment,omitzero"`
	Rows    int64    `json:"rows"` // estimated; -1 if it was never analyzed
	Columns []Column `json:"columns"`
	Keys    []string `json:"keys"`    // definitions of the constraints
	Indexes []string `json:"indexes"` // statements that create the indexes
}

// Column describes a column of a table.
type Column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
	Default  string `json:"default,omitzero"`
	Comment  string `json:"comment,omitzero"`
}

// tablesSQL lists the tables that the user may read.
const tablesSQL = `
SELECT n.nspname, c.relname, md5(coalesce(string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
	col_description(c.oid, a.attnum)), ',' ORDER BY a.attnum), '') || coalesce(obj_description(c.oid, 'pg_class'), ''))
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
	AND n.nspname NOT LIKE 'pg\_%' AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
GROUP BY c.oid, n.nspname, c.relname
ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C"`

const tableSQL = `
SELECT c.oid, CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE 'table' END,
	coalesce(obj_description(c.oid, 'pg_class'), ''), c.reltuples::bigint
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
	AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')`

const columnsSQL = `
SELECT a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
	coalesce(pg_get_expr(d.adbin, d.adrelid), ''), coalesce(col_description(a.attrelid, a.attnum), '')
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`

const keysSQL = `SELECT conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = $1 ORDER BY contype DESC, conname`

const indexesSQL = `SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = $1 ORDER BY indexrelid`

func (s *Server) addResources() {
	server.Resource(s.Server, uriPrefix+"{schema}/{table}", "The columns, keys, indexes and comments of a table or view.", s.readTable,
		server.ResourceOptions{
			Name: "table", MIMEType: "application/json",
			Complete: map[string]server.CompleteFunc{"schema": s.completeName, "table": s.completeName},
		})
	s.Provide(s.listResources)
}

type tableIn struct {
	Schema string `uri:"schema"`
	Table  string `uri:"table"`
}

func (s *Server) readTable(ctx context.Context, in tableIn) (out Table, err error) {
	if strings.ContainsRune(in.Schema+in.Table, 0) {
		return out, mcp.ResourceNotFound(server.URI(ctx))
	}
	err = s.readDatabase(ctx, func(tx pgx.Tx) error {
		out = Table{Schema: in.Schema, Name: in.Table}
		var oid uint32
		if err := tx.QueryRow(ctx, tableSQL, in.Schema, in.Table).Scan(&oid, &out.Kind, &out.Comment, &out.Rows); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, columnsSQL, oid) // CollectRows reports the error
		if out.Columns, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Column]); err != nil {
			return err
		}
		rows, _ = tx.Query(ctx, keysSQL, oid)
		if out.Keys, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return err
		}
		rows, _ = tx.Query(ctx, indexesSQL, oid)
		out.Indexes, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return out, mcp.ResourceNotFound(server.URI(ctx))
	}
	return out, err
}

// A listedTable is a table in a list. Its digest changes with its columns and comments.
type listedTable struct{ Schema, Name, Digest string }

// uri returns the URI of the table's resource.
func (t listedTable) uri() string {
	return uriPrefix + encodeVariable(t.Schema) + "/" + encodeVariable(t.Name)
}

// encodeVariable encodes a variable of a URI template. Form encoding encodes the same characters,
// but a space as +.
func encodeVariable(name string) string { return strings.ReplaceAll(url.QueryEscape(name), "+", "%20") }

func (s *Server) listTables(ctx context.Context) (all []listedTable, err error) {
	err = s.readDatabase(ctx, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, tablesSQL) // CollectRows reports the error
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[listedTable])
		return err
	})
	return all, err
}

// listResources yields the tables, sorted by schema and name.
func (s *Server) listResources(ctx context.Context, after string) iter.Seq2[mcp.Resource, error] {
	return func(yield func(mcp.Resource, error) bool) {
		all, err := s.listTables(ctx)
		if err != nil {
			yield(mcp.Resource{}, err)
			return
		}
		passed := after == ""
		for _, t := range all {
			uri := t.uri()
			if passed && !yield(mcp.Resource{URI: uri, Name: t.Schema + "." + t.Name, MIMEType: "application/json"}, nil) {
				return
			}
			passed = passed || uri == after
		}
	}
}

// completeName suggests schemas, or the tables of the schema that is already chosen.
func (s *Server) completeName(ctx context.Context, typed string, settled map[string]string) ([]string, error) {
	all, err := s.listTables(ctx)
	if err != nil {
		return nil, err
	}
	schema, chosen := settled["schema"]
	var names []string
	for _, t := range all {
		switch {
		case chosen && t.Schema == schema:
			names = append(names, t.Name)
		case !chosen && (len(names) == 0 || names[len(names)-1] != t.Schema):
			names = append(names, t.Schema)
		}
	}
	return server.CompleteFrom(names...)(ctx, typed, settled)
}

// pollSchema notifies clients of tables that have come, gone or changed. It is silent while the
// database cannot be reached.
func (s *Server) pollSchema(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var known map[string]string // digests by URI; nil before the first answer
	for {
		if all, err := s.listTables(ctx); err == nil {
			current := map[string]string{}
			for _, t := range all {
				current[t.uri()] = t.Digest
			}
			if known != nil {
				s.announceChanges(known, current)
			}
			known = current
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (s *Server) announceChanges(known, current map[string]string) {
	listChanged := len(known) != len(current)
	for uri, digest := range current {
		old, existed := known[uri]
		listChanged = listChanged || !existed
		if existed && old != digest {
			s.Updated(uri)
		}
	}
	if listChanged {
		s.ListChanged(server.KindResource)
	}
}
