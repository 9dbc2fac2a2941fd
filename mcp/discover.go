package mcp

// DiscoverResult is a server's description of itself (server/discover).
type DiscoverResult struct {
	Meta              Meta               `json:"_meta,omitempty"`
	SupportedVersions []Revision         `json:"supportedVersions"`
	Capabilities      ServerCapabilities `json:"capabilities"`
	Instructions      string             `json:"instructions,omitzero"`
}
