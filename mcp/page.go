package mcp

// ListParams asks for a page of a list. A nil cursor is the first page; an empty one is a cursor like any other.
type ListParams struct {
	Meta   Meta    `json:"_meta,omitempty"`
	Cursor *string `json:"cursor,omitzero"`
}

// Page is the part that all list results share. NextCursor is nil on the last page.
type Page struct {
	NextCursor *string `json:"nextCursor,omitzero"`
}
