package data

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// sampledLines is the number of lines in which the names of the columns are searched.
const sampledLines = 1000

// openJSONLines collects the columns of a file with a JSON object on each line. Members that first
// occur later are ignored.
func openJSONLines(t *table) error {
	r := newJSONReader(t.newStream(t.file), nil)
	known := map[string]int{}
	for range sampledLines {
		err := r.readLine(func(name string, _ json.RawMessage) {
			if _, found := known[name]; !found {
				known[name] = len(t.columns)
				t.columns = append(t.columns, name)
			}
		})
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if len(t.columns) > maxColumns {
			return nil // openTable reports it
		}
	}
	t.columns = uniqueNames(t.columns)
	t.openRows = func(source io.ReaderAt) (rowReader, error) {
		return newJSONReader(t.newStream(source), known), nil
	}
	return nil
}

type jsonReader struct {
	lines   *bufio.Scanner
	line    int
	columns map[string]int
	cells   []json.RawMessage
}

func newJSONReader(stream io.Reader, columns map[string]int) *jsonReader {
	r := &jsonReader{lines: bufio.NewScanner(stream), columns: columns, cells: make([]json.RawMessage, len(columns))}
	r.lines.Buffer(make([]byte, 0, readAhead), maxRow)
	return r
}

func (r *jsonReader) readRow() error {
	clear(r.cells)
	return r.readLine(func(name string, raw json.RawMessage) {
		if column, found := r.columns[name]; found {
			r.cells[column] = raw
		}
	})
}

// readLine calls yield for each member of the object on the next line that is not empty.
func (r *jsonReader) readLine(yield func(name string, raw json.RawMessage)) error {
	for r.lines.Scan() {
		r.line++
		text := bytes.TrimSpace(bytes.TrimPrefix(r.lines.Bytes(), []byte(byteOrderMark)))
		if len(text) == 0 {
			continue
		}
		if err := splitObject(text, yield); err != nil {
			return fmt.Errorf("line %d is not a JSON object: %w", r.line, err)
		}
		return nil
	}
	if errors.Is(r.lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d is longer than %d bytes", r.line+1, maxRow)
	}
	if err := r.lines.Err(); err != nil {
		return err
	}
	return io.EOF
}

func (r *jsonReader) cell(column int) value {
	if r.cells[column] == nil {
		return value{}
	}
	return jsonValue(r.cells[column])
}

// splitObject calls yield for each member of a JSON object, in order.
func splitObject(text []byte, yield func(name string, raw json.RawMessage)) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return errors.Join(err, errors.New("want { at its beginning"))
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		yield(name.(string), raw)
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if d.InputOffset() != int64(len(text)) {
		return errors.New("something follows the object")
	}
	return nil
}
