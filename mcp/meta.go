package mcp

// Meta is a _meta object (basic/index: _meta). Keys under io.modelcontextprotocol/ belong to the
// protocol; transports read and write them.
type Meta map[string]any

// Icon is an image for a user interface (basic/index: icons). It comes from the peer: treat it as
// untrusted.
type Icon struct {
	Src      string   `json:"src"`
	MIMEType string   `json:"mimeType,omitzero"`
	Sizes    []string `json:"sizes,omitempty"`
	Theme    string   `json:"theme,omitzero"` // light or dark
}

// Implementation describes a client or server for display. Do not base decisions on it.
type Implementation struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitzero"`
	Version     string `json:"version"`
	Description string `json:"description,omitzero"`
	WebsiteURL  string `json:"websiteUrl,omitzero"`
	Icons       []Icon `json:"icons,omitempty"`
}

// Annotations tell a client for whom an object is meant and how important it is.
type Annotations struct {
	Audience     []Role   `json:"audience,omitempty"`
	Priority     *float64 `json:"priority,omitzero"`     // 0 to 1
	LastModified string   `json:"lastModified,omitzero"` // ISO 8601
}

// Role is the author of a message.
type Role string

const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)
