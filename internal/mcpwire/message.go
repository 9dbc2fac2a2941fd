package mcpwire

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/mcp"
)

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

// Types of an [mcp.CompletionRef].
const (
	RefPrompt   = "ref/prompt"
	RefResource = "ref/resource"
)

// InitializeParams opens a legacy session.
type InitializeParams struct {
	ProtocolVersion mcp.Revision       `json:"protocolVersion"`
	Capabilities    json.RawMessage    `json:"capabilities"`
	ClientInfo      mcp.Implementation `json:"clientInfo"`
}

// InitializeResult answers initialize.
type InitializeResult struct {
	Meta            mcp.Meta           `json:"_meta,omitempty"`
	ProtocolVersion mcp.Revision       `json:"protocolVersion"`
	Capabilities    json.RawMessage    `json:"capabilities"`
	ServerInfo      mcp.Implementation `json:"serverInfo"`
	Instructions    string             `json:"instructions,omitzero"`
}

// SetLevelParams sets the log level of a legacy session.
type SetLevelParams struct {
	Level mcp.LoggingLevel `json:"level"`
}

// CancelledParams cancels a request (basic/patterns/cancellation).
type CancelledParams struct {
	RequestID json.RawMessage `json:"requestId"`
	Reason    string          `json:"reason,omitzero"`
}

// ElicitationCompletedParams tells a client of 2025-11-25 that the user has finished at a URL.
type ElicitationCompletedParams struct {
	ElicitationID string `json:"elicitationId"`
}

// CodeURLElicitationRequired is an error code of 2025-11-25: the client must ask the user to visit
// URLs and then send the request again.
const CodeURLElicitationRequired = -32042

// UnsupportedVersion returns the protocol error for an unsupported revision.
func UnsupportedVersion(requested string, supported []mcp.Revision) *mcp.Error {
	e := mcp.Errorf(mcp.CodeUnsupportedProtocolVersion, "Unsupported protocol version")
	e.Data, _ = json.Marshal(UnsupportedVersionData{Supported: supported, Requested: requested})
	return e
}

// UnsupportedVersionData is the data of an unsupported version error.
type UnsupportedVersionData struct {
	Supported []mcp.Revision `json:"supported"`
	Requested string         `json:"requested"`
}
