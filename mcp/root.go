package mcp

// Root is a file or directory that a server may work on (client/roots).
type Root struct {
	URI  string `json:"uri"` // file://…
	Name string `json:"name,omitzero"`
	Meta Meta   `json:"_meta,omitempty"`
}

// ListRootsResult holds the client's roots.
type ListRootsResult struct {
	Roots []Root `json:"roots"`
}
