package interop

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/schema"
	_ "github.com/google/jsonschema-go/jsonschema" // imported, like the next one, for its testdata
	_ "github.com/qri-io/jsonschema"
)

// suites locates the official JSON Schema test suite of each dialect. Two other implementations
// have it in their modules.
var suites = map[string]struct{ module, folder, dialect string }{
	"draft4":       {"github.com/qri-io/jsonschema", "testdata/draft4", "http://json-schema.org/draft-04/schema#"},
	"draft6":       {"github.com/qri-io/jsonschema", "testdata/draft6", "http://json-schema.org/draft-06/schema#"},
	"draft7":       {"github.com/google/jsonschema-go", "jsonschema/testdata/draft7", "http://json-schema.org/draft-07/schema#"},
	"draft2019-09": {"github.com/qri-io/jsonschema", "testdata/draft2019-09", "https://json-schema.org/draft/2019-09/schema"},
	"draft2020-12": {"github.com/google/jsonschema-go", "jsonschema/testdata/draft2020-12", "https://json-schema.org/draft/2020-12/schema"},
}

type suiteCase struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// TestSchemaSuite runs the official test suite against package schema. It leaves out only schemas
// that Compile refuses for a documented reason: references to other documents, patterns that Go's
// regexp cannot run, and unknown dialects.
func TestSchemaSuite(t *testing.T) {
	for name, suite := range suites {
		t.Run(name, func(t *testing.T) {
			files, _ := filepath.Glob(filepath.Join(moduleDir(t, suite.module), suite.folder, "*.json"))
			ran, refused := 0, map[string]int{}
			for _, file := range files {
				for _, c := range suiteCases(t, file) {
					s, err := schema.Compile(withDialect(c.Schema, suite.dialect))
					if errors.Is(err, schema.ErrUnsupported) {
						refused[filepath.Base(file)]++
						if !isDocumented(err) {
							t.Errorf("%s, %s: %v", filepath.Base(file), c.Description, err)
						}
						continue
					}
					if err != nil {
						t.Errorf("%s, %s: %v\n%s", filepath.Base(file), c.Description, err, c.Schema)
						continue
					}
					for _, test := range c.Tests {
						ran++
						if err := s.Validate(test.Data); (err == nil) != test.Valid {
							t.Errorf("%s, %s, %s: %v, want valid %v\n%s\n%s", filepath.Base(file), c.Description, test.Description, err, test.Valid, c.Schema, test.Data)
						}
					}
				}
			}
			t.Logf("%d tests of %d files; refused: %v", ran, len(files), refused)
			if ran < 400 {
				t.Errorf("%d tests ran, want at least 400", ran)
			}
		})
	}
}

// isDocumented reports whether Compile documents the reason for refusing a schema.
func isDocumented(err error) bool {
	return strings.Contains(err.Error(), "leaves the document") || strings.Contains(err.Error(), "Go's regexp cannot run") || strings.Contains(err.Error(), "dialect")
}

func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("%s: %v", module, err)
	}
	return strings.TrimSpace(string(out))
}

func suiteCases(t *testing.T, file string) (cases []suiteCase) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &cases)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return cases
}

// withDialect adds $schema to a schema that has none.
func withDialect(raw json.RawMessage, dialect string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil || members["$schema"] != nil {
		return raw
	}
	head := `{"$schema":"` + dialect + `"`
	if len(members) > 0 {
		head += ","
	}
	return append([]byte(head), raw[strings.IndexByte(string(raw), '{')+1:]...)
}
