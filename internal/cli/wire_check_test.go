package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	schemas "github.com/dowel-mcp/dowel/internal/wiretest"
	"github.com/dowel-mcp/dowel/transport"
)

// violationsVariable names the file to which each dowel process of the tests writes its violations
// of the protocol.
const violationsVariable = "DOWEL_TEST_VIOLATIONS"

// runWireChecked runs the tests and checks each message that dowel sends against the schema of its
// revision.
func runWireChecked(tests func() int) int {
	folder, err := os.MkdirTemp("", "dowel-wire")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "violations")
	os.Setenv(violationsVariable, file)
	connect.WatchWire = checkWire
	code := tests()
	if violations, _ := os.ReadFile(file); len(violations) > 0 {
		fmt.Printf("dowel broke the protocol:\n%s", violations)
		return 1
	}
	return code
}

// checkWire checks the messages that dowel sends on its connections. A request with the id 1 begins
// a new connection. It ignores violations of test servers, which are intended.
func checkWire(next transport.Tap) transport.Tap {
	check := schemas.NewChecker()
	return func(f transport.Frame) {
		from := schemas.Client
		if f.Kind == transport.Received {
			from = schemas.Server
		}
		if from == schemas.Client && string(rawjson.Lookup(f.Data, "id")) == "1" && rawjson.Lookup(f.Data, "method") != nil {
			check = schemas.NewChecker()
		}
		if f.Kind != transport.Malformed {
			for _, err := range check.Frame(from, bytes.Clone(f.Data)) {
				if from == schemas.Client {
					reportViolation(err)
				}
			}
		}
		if next != nil {
			next(f)
		}
	}
}

func reportViolation(violation error) {
	f, err := os.OpenFile(os.Getenv(violationsVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintln(f, violation)
}
