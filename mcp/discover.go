package mcp

// DiscoverResult is a server's description of itself (server/discover).
type DiscoverResult struct {
	Meta              Meta               `json:"_meta,omitempty"`
	SupportedVersions []Revision         `json:"supportedVersions"`
	Capabilities      ServerCapabilities `json:"capabilities"`
	Instructions      string             `json:"instructions,omitzero"`
}

// InitializeParams opens a legacy session. Package transport handles the handshake, so servers and
// clients do not see it.
type InitializeParams struct {
	ProtocolVersion Revision       `json:"protocolVersion"`
	Capabilities    Object         `json:"capabilities"`
	ClientInfo      Implementation `json:"clientInfo"`
}

// InitializeResult answers initialize.
type InitializeResult struct {
	Meta            Meta           `json:"_meta,omitempty"`
	ProtocolVersion Revision       `json:"protocolVersion"`
	Capabilities    Object         `json:"capabilities"`
	ServerInfo      Implementation `json:"serverInfo"`
	Instructions    string         `json:"instructions,omitzero"`
}
