package peer

// Typed is a peer that infers schemas from Go types.
type Typed interface {
	// NewTypedServer returns a server with 1,000 tools, each of a type of its own.
	NewTypedServer() Server
}

// The digits make 1,000 types of one generic type with three parameters.
type (
	D0 struct{}
	D1 struct{}
	D2 struct{}
	D3 struct{}
	D4 struct{}
	D5 struct{}
	D6 struct{}
	D7 struct{}
	D8 struct{}
	D9 struct{}
)
