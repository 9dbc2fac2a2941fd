package data

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// A module makes files virtual tables of SQLite.
type module struct {
	ctx    context.Context
	tables map[string]*table // by name
	err    error             // the first error of reading a file
}

func (m *module) closeFiles() {
	for _, t := range m.tables {
		t.file.Close()
	}
}

// moduleName is the name of the module within SQLite.
const moduleName = "file"

func (m *module) createTables(db *sqlite3.Conn) error {
	connect := func(db *sqlite3.Conn, _, _, name string, _ ...string) (*virtualTable, error) {
		t := m.tables[name]
		var columns []string
		for _, column := range t.columns {
			columns = append(columns, sqlite3.QuoteIdentifier(column))
		}
		return &virtualTable{m, t}, db.DeclareVTab("CREATE TABLE t(" + strings.Join(columns, ", ") + ")")
	}
	//nolint:staticcheck // its successor is a generic method, which needs Go 1.27
	if err := sqlite3.CreateModule(db, moduleName, connect, connect); err != nil {
		return err
	}
	for name := range m.tables {
		if err := db.Exec("CREATE VIRTUAL TABLE temp." + sqlite3.QuoteIdentifier(name) + " USING " + moduleName); err != nil {
			return err
		}
	}
	return nil
}

// A virtualTable is a file that SQLite reads row by row.
type virtualTable struct {
	module *module
	table  *table
}

// rowBytes is a guess of the size of a row, for the order in which SQLite joins tables.
const rowBytes = 100

// BestIndex implements [sqlite3.VTab].
func (t *virtualTable) BestIndex(index *sqlite3.IndexInfo) error {
	index.EstimatedRows = 1 + t.table.size/rowBytes
	index.EstimatedCost = 10 * float64(index.EstimatedRows)
	return nil
}

// Open implements [sqlite3.VTab].
func (t *virtualTable) Open() (sqlite3.VTabCursor, error) { return &cursor{virtualTable: t}, nil }

// A cursor is a position in a file.
type cursor struct {
	*virtualTable
	reader rowReader
	row    int64
	ended  bool
}

// Filter implements [sqlite3.VTabCursor]: it moves to the first row.
func (c *cursor) Filter(int, string, ...sqlite3.Value) (err error) {
	t := c.table
	c.row, c.ended = 0, false
	source := &progressReader{ctx: c.module.ctx, ReaderAt: t.file, size: t.size}
	if c.reader, err = t.openRows(source); err != nil {
		return c.fail(err)
	}
	return c.Next()
}

// Next implements [sqlite3.VTabCursor].
func (c *cursor) Next() error {
	c.row++
	err := c.reader.readRow()
	if errors.Is(err, io.EOF) {
		c.ended = true
		return nil
	}
	return c.fail(err)
}

func (c *cursor) fail(err error) error {
	if err != nil && c.module.err == nil {
		c.module.err = errors.New(c.table.path + ": " + err.Error())
	}
	return err
}

// EOF implements [sqlite3.VTabCursor].
func (c *cursor) EOF() bool { return c.ended }

// RowID implements [sqlite3.VTabCursor].
func (c *cursor) RowID() (int64, error) { return c.row, nil }

// Column implements [sqlite3.VTabCursor].
func (c *cursor) Column(result sqlite3.Context, column int) error {
	switch v := c.reader.cell(column); v.kind {
	case kindMissing:
		result.ResultNull()
	case kindInteger, kindBoolean:
		result.ResultInt64(v.integer)
	case kindNumber:
		result.ResultFloat(v.number)
	default:
		result.ResultText(v.text)
	}
	return nil
}
