package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dowel-mcp/dowel/server"
)

// A rowReader reads the rows of a table one after another.
type rowReader interface {
	// readRow moves to the next row. It returns io.EOF at the end.
	readRow() error
	// cell returns a cell of the row, until the next readRow.
	cell(column int) value
}

// A table is an open file with rows.
type table struct {
	file    *os.File
	size    int64
	path    string // as the client wrote it
	format  string
	columns []string
	// openRows returns a reader at the first row.
	openRows func(source io.ReaderAt) (rowReader, error)
}

// formats are the ways to read a file, by the ending of its name.
var formats = map[string]struct {
	name string
	open func(*table) error
}{
	".csv":     {"CSV", openCSV},
	".tsv":     {"TSV", openCSV},
	".tab":     {"TSV", openCSV},
	".jsonl":   {"JSON lines", openJSONLines},
	".ndjson":  {"JSON lines", openJSONLines},
	".parquet": {"Parquet", openParquet},
}

// openTable opens a file and reads the names of its columns. The caller must close its file.
func (all roots) openTable(path string) (*table, error) {
	format, known := formats[strings.ToLower(filepath.Ext(path))]
	if !known {
		return nil, fmt.Errorf("%s: want a file that ends with .csv, .tsv, .jsonl, .ndjson or .parquet", path)
	}
	f, err := all.openFile(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	t := &table{file: f, path: path, format: format.name}
	if err == nil {
		t.size = info.Size()
		err = format.open(t)
	}
	if err == nil && len(t.columns) > maxColumns {
		err = fmt.Errorf("it has %d columns: want at most %d", len(t.columns), maxColumns)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// rows calls yield for each row until it fails. It reports the progress of the request in ctx.
func (t *table) rows(ctx context.Context, yield func(rowReader) error) error {
	source := &progressReader{ctx: ctx, ReaderAt: t.file, size: t.size}
	reader, err := t.openRows(source)
	if err != nil {
		return fmt.Errorf("%s: %w", t.path, err)
	}
	for {
		err := reader.readRow()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.path, err)
		}
		if err := yield(reader); err != nil {
			return err
		}
	}
}

// A progressReader reports how far a file was read. It fails when its context ends.
type progressReader struct {
	ctx context.Context
	io.ReaderAt
	size int64
}

func (r *progressReader) ReadAt(p []byte, offset int64) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	server.Progress(r.ctx, float64(offset), float64(r.size), "")
	return r.ReaderAt.ReadAt(p, offset)
}

// newStream returns a reader of all bytes of source.
func (t *table) newStream(source io.ReaderAt) io.Reader {
	return io.NewSectionReader(source, 0, t.size)
}

// uniqueNames returns a name for each column: columns without a name are numbered, and repeated
// names get a number. SQL ignores case in names, and so does uniqueNames.
func uniqueNames(given []string) []string {
	used := map[string]bool{}
	var names []string
	for i, name := range given {
		name = strings.TrimSpace(cleanText(name))
		if name == "" {
			name = "column_" + strconv.Itoa(i+1)
		}
		unique := name
		for n := 2; used[strings.ToLower(unique)]; n++ {
			unique = name + "_" + strconv.Itoa(n)
		}
		used[strings.ToLower(unique)] = true
		names = append(names, unique)
	}
	return names
}
