package data

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// readAhead is the size of the buffers in front of a file.
const readAhead = 256 << 10

// openCSV reads the header of a CSV or TSV file.
func openCSV(t *table) error {
	separator, err := findSeparator(t)
	if err != nil {
		return err
	}
	t.openRows = func(source io.ReaderAt) (rowReader, error) {
		r := newCSVReader(t.newStream(source), separator)
		return r, r.readRow() // the header
	}
	header, err := t.openRows(t.file)
	if errors.Is(err, io.EOF) {
		return errors.New("it is empty: want a first line with the names of the columns")
	}
	if err != nil {
		return err
	}
	t.columns = uniqueNames(header.(*csvReader).cells)
	return nil
}

// byteOrderMark begins a file in UTF-8 that some spreadsheets have written.
const byteOrderMark = "\uFEFF"

// findSeparator returns the separator of a TSV file, or the separator that occurs most often in the
// first line of a CSV file.
func findSeparator(t *table) (rune, error) {
	if t.format == "TSV" {
		return '\t', nil
	}
	line := make([]byte, min(64<<10, t.size))
	if _, err := t.file.ReadAt(line, 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if bytes.HasPrefix(line, []byte{0xFF, 0xFE}) || bytes.HasPrefix(line, []byte{0xFE, 0xFF}) {
		return 0, errors.New("it is encoded as UTF-16: want UTF-8")
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	best := ','
	for _, separator := range ";\t|" {
		if bytes.Count(line, []byte(string(separator))) > bytes.Count(line, []byte(string(best))) {
			best = separator
		}
	}
	return best, nil
}

// A csvReader reads CSV as programs write it: a quote within a cell without quotes is text, and a
// row may have fewer or more cells than the header.
type csvReader struct {
	source  *rowLimit
	decoder *csv.Reader
	cells   []string
}

func newCSVReader(stream io.Reader, separator rune) *csvReader {
	buffered := bufio.NewReaderSize(stream, readAhead)
	if mark, _ := buffered.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = buffered.Discard(len(byteOrderMark)) // the bytes are in the buffer
	}
	r := &csvReader{source: &rowLimit{Reader: buffered}}
	r.decoder = csv.NewReader(r.source)
	r.decoder.Comma = separator
	r.decoder.LazyQuotes = true
	r.decoder.FieldsPerRecord = -1
	r.decoder.ReuseRecord = true
	return r
}

func (r *csvReader) readRow() (err error) {
	r.source.used = 0
	r.cells, err = r.decoder.Read()
	if errors.Is(err, errLongRow) {
		line, _ := r.decoder.FieldPos(0)
		return fmt.Errorf("a row behind line %d is longer than %d bytes; a quote may be missing", line, maxRow)
	}
	return err
}

func (r *csvReader) cell(column int) value {
	if column >= len(r.cells) {
		return value{}
	}
	return parseCell(strings.TrimSpace(r.cells[column]))
}

// cellCount returns the number of cells in the row.
func (r *csvReader) cellCount() int { return len(r.cells) }

var errLongRow = errors.New("the row is too long")

// A rowLimit fails when a decoder reads more than maxRow bytes for one row. The decoder reads ahead
// by less than a row's limit.
type rowLimit struct {
	io.Reader
	used int
}

func (l *rowLimit) Read(p []byte) (int, error) {
	if l.used > maxRow {
		return 0, errLongRow
	}
	n, err := l.Reader.Read(p)
	l.used += n
	return n, err
}
