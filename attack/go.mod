// Attacks on the program and its soak test. A module of its own, so that `go test ./...` of dowel stays quick.
module github.com/dowel-mcp/dowel/attack

go 1.26.0

replace github.com/dowel-mcp/dowel => ../

require (
	github.com/coder/websocket v1.8.15
	github.com/dowel-mcp/dowel v0.0.0
)

require (
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)
