package data

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

const queryDescription = "Runs one SELECT of SQLite over files. tables gives each file a name: " +
	`{"sql": "SELECT city, avg(price) FROM sales GROUP BY city", "tables": {"sales": "sales/2024.csv"}}. ` +
	"Each use of a table reads its file once; join through WITH small AS MATERIALIZED (SELECT …), so that a file is not read for each row of another."

// Limits of a query.
const (
	queryMemory = 64 << 20 // bytes of SQLite
	maxLength   = 8 << 20  // bytes of a text within SQLite
	maxTables   = 8
	maxResult   = 512 << 10 // bytes of the cells of a result
	maxCell     = 16 << 10  // bytes of a cell of a result
)

type queryIn struct {
	SQL    string            `json:"sql" doc:"A SELECT in the dialect of SQLite" minLength:"1" maxLength:"65536"`
	Tables map[string]string `json:"tables" doc:"The path of each table's file, by the name that the SQL uses"`
	Limit  int               `json:"limit,omitzero" doc:"The maximal number of rows" default:"100" minimum:"1" maximum:"10000"`
}

// Result is the result of a query.
type Result struct {
	Columns   []string `json:"columns"`
	Rows      [][]any  `json:"rows" doc:"A cell is null, a number or a text; a blob is base64"`
	Truncated bool     `json:"truncated" doc:"Whether the result has more rows or longer cells than shown"`
}

func (s *Server) queryFiles(ctx context.Context, in queryIn) (out Result, err error) {
	err = s.runJob(ctx, func(ctx context.Context) error {
		out, err = s.runQuery(ctx, in)
		return err
	})
	return out, err
}

func (s *Server) runQuery(ctx context.Context, in queryIn) (out Result, err error) {
	if len(in.Tables) > maxTables {
		return out, fmt.Errorf("%d tables: want at most %d", len(in.Tables), maxTables)
	}
	temp := &tempFiles{left: s.opts.TempSize}
	db, closeDB, err := openDatabase(ctx, temp)
	if err != nil {
		return out, err
	}
	defer closeDB()
	module := &module{ctx: ctx, tables: map[string]*table{}}
	defer module.closeFiles()
	for _, name := range slices.Sorted(maps.Keys(in.Tables)) {
		if module.tables[name], err = s.roots.openTable(in.Tables[name]); err != nil {
			delete(module.tables, name)
			return out, err
		}
	}
	if err := module.createTables(db); err != nil {
		return out, err
	}
	if err := db.SetAuthorizer(allowReading); err != nil {
		return out, err
	}
	out, err = selectRows(db, in)
	switch {
	case ctx.Err() != nil:
		return out, ctx.Err()
	case module.err != nil: // SQLite's error hides the reason
		return out, module.err
	case errors.Is(err, sqlite3.NOMEM):
		return out, fmt.Errorf("the query needs more than %d MiB: select fewer columns, or aggregate first", queryMemory>>20)
	case errors.Is(err, sqlite3.FULL):
		return out, errors.New("the query needs more temporary space than the server allows: filter before it sorts or groups")
	case errors.Is(err, sqlite3.AUTH):
		return out, errors.New("the query may only read its tables: want a SELECT")
	}
	return out, err
}

// allowReading permits what a SELECT does.
func allowReading(action sqlite3.AuthorizerActionCode, _, function, _, _ string) sqlite3.AuthorizerReturnCode {
	switch action {
	case sqlite3.AUTH_SELECT, sqlite3.AUTH_READ, sqlite3.AUTH_RECURSIVE:
		return sqlite3.AUTH_OK
	case sqlite3.AUTH_FUNCTION:
		if !strings.EqualFold(function, "load_extension") {
			return sqlite3.AUTH_OK
		}
	}
	return sqlite3.AUTH_DENY
}

func selectRows(db *sqlite3.Conn, in queryIn) (out Result, err error) {
	stmt, rest, err := db.Prepare(in.SQL)
	if err != nil {
		return out, explainSQL(err)
	}
	if stmt == nil {
		return out, errors.New("the SQL is empty: want a SELECT")
	}
	defer stmt.Close()
	if strings.Trim(rest, " \t\r\n;") != "" {
		return out, errors.New("want one statement")
	}
	if !stmt.ReadOnly() {
		return out, errors.New("want a SELECT")
	}
	for i := range stmt.ColumnCount() {
		out.Columns = append(out.Columns, stmt.ColumnName(i))
	}
	size := 0
	for stmt.Step() {
		if len(out.Rows) == in.Limit || size > maxResult {
			out.Truncated = true
			return out, nil
		}
		row := make([]any, len(out.Columns))
		for i := range row {
			cell, cut := readCell(stmt, i)
			row[i] = cell
			out.Truncated = out.Truncated || cut
			size += 8
			if text, ok := cell.(string); ok {
				size += len(text)
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out, explainSQL(stmt.Err())
}

// readCell returns a cell of the current row as JSON has it, and whether it was cut.
func readCell(stmt *sqlite3.Stmt, column int) (cell any, cut bool) {
	switch stmt.ColumnType(column) {
	case sqlite3.INTEGER:
		return stmt.ColumnInt64(column), false
	case sqlite3.FLOAT:
		return numberValue(stmt.ColumnFloat(column)).any(), false
	case sqlite3.TEXT:
		text := cleanText(string(stmt.ColumnRawText(column)))
		return cutText(text, maxCell), len(text) > maxCell
	case sqlite3.BLOB:
		raw := stmt.ColumnRawBlob(column)
		return base64.StdEncoding.EncodeToString(raw[:min(len(raw), maxCell)]), len(raw) > maxCell
	}
	return nil, false
}

// explainSQL removes the package's prefix from an error of SQLite.
func explainSQL(err error) error {
	if e, ok := errors.AsType[*sqlite3.Error](err); ok && e.Code() == sqlite3.ERROR {
		return errors.New(strings.TrimPrefix(e.Error(), "sqlite3: SQL logic error: "))
	}
	return err
}
