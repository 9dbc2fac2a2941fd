package mcp

import "encoding/json"

// Meta is a _meta object (basic/index: _meta). Keys under io.modelcontextprotocol/ belong to the
// protocol; transports read and write them.
type Meta map[string]any

// The protocol's keys of _meta.
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
	MetaProgressToken      = "progressToken"
)

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

// Object is a raw JSON object, such as the settings of an extension.
type Object = json.RawMessage
