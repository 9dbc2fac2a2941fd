package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// openParquet checks a Parquet file and reads its schema. A column within a structure has the name
// of its path, such as address.city; the cell of a list is a JSON array.
func openParquet(t *table) (err error) {
	defer recoverParquet(&err)
	if err := checkParquet(t); err != nil {
		return err
	}
	file, err := openParquetFile(t.file, t.size)
	if err != nil {
		return err
	}
	for _, path := range file.Schema().Columns() {
		name := strings.Join(path, ".")
		name = strings.TrimSuffix(name, ".list.element")
		t.columns = append(t.columns, name)
	}
	t.columns = uniqueNames(t.columns)
	t.openRows = func(source io.ReaderAt) (rowReader, error) { return newParquetReader(source, t.size) }
	return nil
}

func openParquetFile(source io.ReaderAt, size int64) (*parquet.File, error) {
	return parquet.OpenFile(source, size,
		parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(32<<10))
}

// recoverParquet turns a panic of the Parquet package into an error: it panics on some damaged
// files.
func recoverParquet(err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("the file is damaged: %v", cause)
	}
}

// A parquetReader reads the rows of one row group after another.
type parquetReader struct {
	groups  []parquet.RowGroup
	columns []*columnType
	rows    parquet.Rows // nil between groups
	batch   []parquet.Row
	next    int // in batch
	filled  int // rows in batch
	cells   [][]parquet.Value
}

// parquetBatch is the number of rows that are decoded at once.
const parquetBatch = 64

func newParquetReader(source io.ReaderAt, size int64) (r *parquetReader, err error) {
	defer recoverParquet(&err)
	file, err := openParquetFile(source, size)
	if err != nil {
		return nil, err
	}
	schema := file.Schema()
	r = &parquetReader{groups: file.RowGroups(), batch: make([]parquet.Row, parquetBatch)}
	for _, path := range schema.Columns() {
		leaf, found := schema.Lookup(path...)
		if !found {
			return nil, fmt.Errorf("the file is damaged: it has no column %s", strings.Join(path, "."))
		}
		r.columns = append(r.columns, newColumnType(leaf))
	}
	r.cells = make([][]parquet.Value, len(r.columns))
	return r, nil
}

func (r *parquetReader) readRow() (err error) {
	defer recoverParquet(&err)
	for r.next == r.filled {
		if err := r.readBatch(); err != nil {
			return err
		}
	}
	clear(r.cells)
	r.batch[r.next].Range(func(column int, values []parquet.Value) bool {
		r.cells[column] = values
		return true
	})
	r.next++
	return nil
}

func (r *parquetReader) readBatch() error {
	r.next, r.filled = 0, 0
	if r.rows == nil {
		if len(r.groups) == 0 {
			return io.EOF
		}
		r.rows, r.groups = r.groups[0].Rows(), r.groups[1:]
	}
	var err error
	r.filled, err = r.rows.ReadRows(r.batch)
	switch {
	case errors.Is(err, io.EOF):
		err = r.rows.Close()
		r.rows = nil
	case err == nil && r.filled == 0:
		err = errors.New("the file is damaged: it has fewer rows than it says")
	}
	return err
}

func (r *parquetReader) cell(column int) value {
	values, t := r.cells[column], r.columns[column]
	if !t.repeated {
		if len(values) == 0 {
			return value{}
		}
		return t.convert(values[0])
	}
	var list []any
	for _, v := range values {
		if !v.IsNull() {
			list = append(list, t.convert(v).any())
		}
	}
	if len(list) == 0 {
		return value{}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return value{}
	}
	return textValue(string(text))
}

// A columnType converts the values of a column.
type columnType struct {
	repeated bool
	logical  format.LogicalTypeValue // nil if the column has none
}

func newColumnType(leaf parquet.LeafColumn) *columnType {
	t := &columnType{repeated: leaf.MaxRepetitionLevel > 0}
	if logical := leaf.Node.Type().LogicalType(); logical != nil {
		t.logical = logical.Value
	}
	return t
}

func (t *columnType) convert(v parquet.Value) value {
	if v.IsNull() {
		return value{}
	}
	switch logical := t.logical.(type) {
	case *format.DateType:
		return textValue(time.Unix(int64(v.Int32())*24*3600, 0).UTC().Format(time.DateOnly))
	case *format.TimestampType:
		return textValue(timestamp(v.Int64(), logical.Unit.Value).Format(time.RFC3339Nano))
	case *format.DecimalType:
		return decimalValue(v, logical.Scale)
	case *format.UUIDType:
		if raw := v.ByteArray(); len(raw) == 16 {
			return textValue(fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:]))
		}
	}
	switch v.Kind() {
	case parquet.Boolean:
		return booleanValue(v.Boolean())
	case parquet.Int32:
		return integerValue(int64(v.Int32()))
	case parquet.Int64:
		return integerValue(v.Int64())
	case parquet.Int96:
		return textValue(julianTime(v).Format(time.RFC3339Nano))
	case parquet.Float:
		return numberValue(float64(v.Float()))
	case parquet.Double:
		return numberValue(v.Double())
	}
	return textValue(string(v.ByteArray()))
}

func timestamp(n int64, unit format.TimeUnitValue) time.Time {
	switch unit.(type) {
	case *format.MilliSeconds:
		return time.UnixMilli(n).UTC()
	case *format.MicroSeconds:
		return time.UnixMicro(n).UTC()
	}
	return time.Unix(0, n).UTC()
}

// julianTime returns the time of an INT96: nanoseconds of a day, and the day's Julian number.
func julianTime(v parquet.Value) time.Time {
	const epoch = 2440588 // the Julian number of 1970-01-01
	n := v.Int96()
	nanoseconds := int64(n[1])<<32 | int64(n[0])
	return time.Unix((int64(n[2])-epoch)*24*3600, nanoseconds).UTC()
}

// decimalValue returns an unscaled number divided by a power of ten.
func decimalValue(v parquet.Value, scale int32) value {
	unscaled := new(big.Int)
	switch v.Kind() {
	case parquet.Int32:
		unscaled.SetInt64(int64(v.Int32()))
	case parquet.Int64:
		unscaled.SetInt64(v.Int64())
	default:
		raw := v.ByteArray()
		unscaled.SetBytes(raw)
		if len(raw) > 0 && raw[0] >= 0x80 { // two's complement
			unscaled.Sub(unscaled, new(big.Int).Lsh(big.NewInt(1), uint(8*len(raw))))
		}
	}
	if scale == 0 && unscaled.IsInt64() {
		return integerValue(unscaled.Int64())
	}
	f, _ := new(big.Float).SetInt(unscaled).Float64()
	return numberValue(f / math.Pow10(int(scale)))
}
