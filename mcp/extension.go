package mcp

import "encoding/json"

// Extension describes an extension of the protocol, so that transports, servers and clients handle
// its messages without knowing their meaning. Pass it to the options of a server or client.
type Extension struct {
	// ID is the identifier, such as io.modelcontextprotocol/tasks.
	ID string
	// Settings is the object declared under ID in the capabilities; nil means {}.
	Settings json.RawMessage
	// ResultTypes lists the result types that the extension adds.
	ResultTypes []ResultType
	// ListenFilters maps each field that the extension adds to a listen filter to the method of the
	// changes that the field selects.
	ListenFilters map[string]string
	// InputRequests maps each method that the extension adds to input requests to the capabilities
	// that the client must declare.
	InputRequests map[string]ClientCapabilities
	// NameFields maps methods to the field of params that the Mcp-Name header mirrors.
	NameFields map[string]string
}
