package sql

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/servers/data"
	"github.com/jackc/pgx/v5"
)

// The rows are what makes CSV hard: quotes, separators and line breaks in cells, an empty text
// beside a missing value, digits behind a zero, spaces, a number of 64 bits.
const exported = `
CREATE TABLE exported (id int, word text, code text, size bigint, price numeric(9,2), ok bool, day date);
INSERT INTO exported VALUES
	(1, 'a "quoted", word', '007', 9007199254740993, 10.50, true, '2026-01-02'),
	(2, E'two\nlines\r\nand more', ' padded ', -1, NULL, false, NULL),
	(3, '', NULL, NULL, -0.01, NULL, '1970-01-01'),
	(4, 'æøå 漢字 🙂;|	tab', '1e3x', 0, 99999.99, true, '0001-01-01');`

// The server data reads the CSV and TSV files that PostgreSQL writes, and finds the values of the
// database in them, without the spaces around a cell. PostgreSQL writes booleans as t and f.
func TestDataReadsExports(t *testing.T) {
	database := startPostgres(t)
	execute(t, database, exported)
	folder := t.TempDir()
	for name, options := range map[string]string{
		"plain.csv":     "FORMAT csv, HEADER",
		"quoted.csv":    "FORMAT csv, HEADER, FORCE_QUOTE *",
		"semicolon.csv": "FORMAT csv, HEADER, DELIMITER ';'",
		"tabs.tsv":      "FORMAT csv, HEADER, DELIMITER E'\\t'",
	} {
		exportTable(t, database, filepath.Join(folder, name), "COPY (SELECT * FROM exported ORDER BY id) TO STDOUT WITH ("+options+")")
		s, err := data.New(data.Options{Roots: []string{folder}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		c, err := client.Dial(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		result, err := client.Call[data.Result](t.Context(), c, "query", map[string]any{
			"sql":    "SELECT id, word, code, CAST(size AS TEXT), price, ok, day FROM e ORDER BY id",
			"tables": map[string]string{"e": name},
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		raw, err := json.Marshal(result.Rows)
		const want = `[[1,"a \"quoted\", word","007","9007199254740993",10.5,"t","2026-01-02"],` +
			`[2,"two\nlines\nand more","padded","-1",null,"f",null],` +
			`[3,null,null,null,-0.01,null,"1970-01-01"],` +
			`[4,"æøå 漢字 🙂;|\ttab","1e3x","0",99999.99,"t","0001-01-01"]]`
		if err != nil || string(raw) != want {
			t.Errorf("%s, %v:\ngot  %s\nwant %s", name, err, raw, want)
		}
	}
}

// exportTable writes the output of a COPY statement to a file.
func exportTable(t *testing.T, database, path, statement string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.PgConn().CopyTo(t.Context(), file, statement)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}
