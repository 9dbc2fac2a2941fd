package sql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

type queryIn struct {
	SQL   string `json:"sql" doc:"One SELECT, without a semicolon" minLength:"1" maxLength:"65536"`
	Limit int    `json:"limit,omitzero" doc:"The maximal number of rows" default:"100" minimum:"1" maximum:"1000"`
}

// Result is the result of a query.
type Result struct {
	Columns   []Field `json:"columns"`
	Rows      [][]any `json:"rows" doc:"A cell is null, a number, a boolean, or the text that PostgreSQL writes"`
	Truncated bool    `json:"truncated" doc:"Whether the result has more rows or longer cells than shown"`
}

// Field is a column of a result.
type Field struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

func (s *Server) queryRows(ctx context.Context, in queryIn) (out Result, err error) {
	err = s.readDatabase(ctx, func(tx pgx.Tx) error {
		if err := runStatement(ctx, tx, "DECLARE dowel NO SCROLL CURSOR FOR "+in.SQL); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, "FETCH "+strconv.Itoa(in.Limit+1)+" FROM dowel", pgx.QueryResultFormats{pgx.TextFormatCode})
		if err != nil {
			return err
		}
		defer rows.Close()
		out = readRows(rows, in.Limit)
		rows.Close()
		return rows.Err()
	})
	return out, explainError(err)
}

// runStatement runs a statement by the extended protocol, in which PostgreSQL refuses several
// statements at once: one of them could end the read-only transaction. [pgx.Tx.Exec] uses the
// simple protocol for a statement without arguments.
func runStatement(ctx context.Context, tx pgx.Tx, statement string) error {
	_, err := tx.Conn().PgConn().ExecParams(ctx, statement, nil, nil, nil, nil).Close()
	return err
}

// readRows returns at most limit rows. The caller checks the error of rows.
func readRows(rows pgx.Rows, limit int) (out Result) {
	types := rows.Conn().TypeMap()
	for _, field := range rows.FieldDescriptions() {
		name := strconv.Itoa(int(field.DataTypeOID))
		if known, found := types.TypeForOID(field.DataTypeOID); found {
			name = known.Name
		}
		out.Columns = append(out.Columns, Field{field.Name, name})
	}
	size := 0
	for rows.Next() {
		if len(out.Rows) == limit || size > maxResult {
			out.Truncated = true
			return out
		}
		row := make([]any, len(out.Columns))
		for i, raw := range rows.RawValues() {
			out.Truncated = out.Truncated || len(raw) > maxCell
			row[i] = readCell(raw, rows.FieldDescriptions()[i].DataTypeOID)
			size += 8 + min(len(raw), maxCell)
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// readCell returns a cell in PostgreSQL's text format as JSON has it.
func readCell(raw []byte, oid uint32) any {
	if raw == nil {
		return nil
	}
	text := string(raw)
	switch oid {
	case pgtype.BoolOID:
		return text == "t"
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case pgtype.Float4OID, pgtype.Float8OID:
		if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
	}
	if len(text) > maxCell {
		return strings.ToValidUTF8(text[:maxCell], "") + "…"
	}
	return text
}

type explainIn struct {
	SQL string `json:"sql" doc:"One SELECT, without a semicolon" minLength:"1" maxLength:"65536"`
}

// Plan is the result of explain.
type Plan struct {
	Plan json.RawMessage `json:"plan" doc:"The output of EXPLAIN (FORMAT JSON)"`
}

func (s *Server) explainQuery(ctx context.Context, in explainIn) (out Plan, err error) {
	err = s.readDatabase(ctx, func(tx pgx.Tx) error {
		result := tx.Conn().PgConn().ExecParams(ctx, "EXPLAIN (FORMAT JSON) "+in.SQL, nil, nil, nil, nil).Read()
		if result.Err == nil && len(result.Rows) == 1 {
			out.Plan = result.Rows[0][0]
		}
		return result.Err
	})
	return out, explainError(err)
}

// explainError makes errors of PostgreSQL useful to a model.
func explainError(err error) error {
	if tooLong, ok := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); ok {
		return fmt.Errorf("a row has %d bytes: want at most %d; select fewer or shorter columns", tooLong.ActualBodyLen, maxMessage)
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	text := e.Message
	if e.Detail != "" {
		text += "; " + e.Detail
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return fmt.Errorf("%s (SQLSTATE %s)", text, e.Code)
}
