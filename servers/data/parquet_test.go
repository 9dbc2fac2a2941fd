package data

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
)

type parquetRow struct {
	ID      int64     `parquet:"id"`
	Name    *string   `parquet:"name,optional"`
	Tags    []string  `parquet:"tags,list"`
	Seen    time.Time `parquet:"seen"`
	Price   int64     `parquet:"price,decimal(2:10)"`
	Address struct {
		City string `parquet:"city,dict"`
	} `parquet:"address"`
}

func parquetBytes[T any](t *testing.T, rows []T, options ...parquet.WriterOption) string {
	t.Helper()
	var file bytes.Buffer
	if err := parquet.Write(&file, rows, options...); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

func sampleRows() []parquetRow {
	name := "Ada"
	rows := []parquetRow{
		{ID: 1, Name: &name, Tags: []string{"x", "y"}, Seen: time.Unix(86400, 0), Price: 1050},
		{ID: 2, Seen: time.Unix(0, 5_000_000), Price: -1},
	}
	rows[0].Address.City = "Oslo"
	return rows
}

func TestParquet(t *testing.T) {
	for name, codec := range map[string]compress.Codec{"plain": &parquet.Uncompressed, "snappy": &parquet.Snappy, "gzip": &parquet.Gzip, "zstd": &parquet.Zstd} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, Options{}, map[string]string{"a.parquet": parquetBytes(t, sampleRows(), parquet.Compression(codec))})
			got := call[Result](t, c, "query", queryIn{SQL: `SELECT id, name, tags, seen, price, "address.city" FROM a`, Tables: map[string]string{"a": "a.parquet"}, Limit: 10})
			wantJSON(t, got.Rows, `[[1,"Ada","[\"x\",\"y\"]","1970-01-02T00:00:00Z",10.5,"Oslo"],[2,null,null,"1970-01-01T00:00:00.005Z",-0.01,""]]`)
		})
	}
}

// The file was written by another program: testdata/make.mjs.
func TestParquetOfAnotherProgram(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("testdata", "cities.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, Options{}, map[string]string{"cities.parquet": string(file)})
	got := call[Result](t, c, "query", queryIn{SQL: "SELECT name, people, area, capital, seen, CAST(big AS TEXT) FROM c", Tables: map[string]string{"c": "cities.parquet"}, Limit: 10})
	wantJSON(t, got.Rows, `[["Oslo",709037,454.12,1,"1970-01-01T00:00:00Z","9007199254740993"],["Rome",2746984,1285.31,1,"1970-01-02T00:00:00Z","-1"],[null,0,0.5,0,null,"0"],["Oslo",null,1,1,"2023-11-14T22:13:20.123Z","5"]]`)
	out := call[Analysis](t, c, "analyze_csv", analyzeIn{"cities.parquet"})
	wantJSON(t, []any{out.Format, out.Rows, out.Columns[0].Distinct, out.Columns[3].Type, out.Columns[4].Type}, `["Parquet",4,2,"boolean","date"]`)
}

func TestParquetBombs(t *testing.T) {
	type text struct {
		A string `parquet:"a"`
	}
	zeros := slices.Repeat([]text{{string(make([]byte, 1<<16))}}, maxPage>>16+1)
	onePage := parquet.PageBufferSize(64 << 20)
	type delta struct {
		A string `parquet:"a,delta"`
	}
	good := parquetBytes(t, sampleRows())
	endless := bytes.Repeat([]byte{0x1C}, 100_000) // a structure in a structure, and so on
	c := dial(t, Options{}, map[string]string{
		"gzip.parquet":   parquetBytes(t, zeros, onePage, parquet.Compression(&parquet.Gzip)),
		"zstd.parquet":   parquetBytes(t, zeros, onePage, parquet.Compression(&parquet.Zstd)),
		"brotli.parquet": parquetBytes(t, []text{{"x"}}, parquet.Compression(&parquet.Brotli)),
		"delta.parquet":  parquetBytes(t, []delta{{"x"}}),
		"short.parquet":  good[:len(good)/2] + good[len(good)-8:],
		"list.parquet":   withFooter([]byte{0x29, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0x07}), // a list of 2³¹-1 items
		"deep.parquet":   withFooter(endless),
	})
	for path, want := range map[string]string{
		"gzip.parquet": "a page has", "zstd.parquet": "a page has", "brotli.parquet": "not supported",
		"delta.parquet": "DELTA", "short.parquet": "", "list.parquet": "items", "deep.parquet": "too many levels",
	} {
		wantToolError(t, c, "analyze_csv", analyzeIn{path}, want)
	}
}

// withFooter returns a Parquet file without rows.
func withFooter(footer []byte) string {
	length := len(footer)
	return "PAR1" + string(footer) + string([]byte{byte(length), byte(length >> 8), byte(length >> 16), byte(length >> 24)}) + "PAR1"
}

// A page that is larger than its header says is refused before it is decompressed.
func TestPagesAreAsLargeAsTheySay(t *testing.T) {
	for name, codec := range map[string]compress.Codec{"snappy": &parquet.Snappy, "gzip": &parquet.Gzip, "zstd": &parquet.Zstd} {
		body, err := codec.Encode(nil, make([]byte, 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		if err := checkBody(sectionOf(body), codec.CompressionCodec(), 1<<20); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := checkBody(sectionOf(body), codec.CompressionCodec(), 1<<20-1); err == nil {
			t.Errorf("%s: a page may be larger than its header says", name)
		}
	}
}

// FuzzParquet changes bytes of a file, which must not end the process.
func FuzzParquet(f *testing.F) {
	f.Fuzz(func(t *testing.T, position uint16, changed byte) {
		file := []byte(parquetBytes(t, sampleRows()))
		file[int(position)%len(file)] = changed
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, "a.parquet"), file, 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := openRoots([]string{root})
		if err != nil {
			t.Fatal(err)
		}
		defer all.closeAll()
		if a, err := all.openTable("a.parquet"); err == nil {
			defer a.file.Close()
			_, _ = analyzeTable(t.Context(), a)
		}
	})
}
