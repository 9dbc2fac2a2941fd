package mcpwire

import (
	"encoding/json"
	"slices"

	"github.com/dowel-mcp/dowel/mcp"
)

// Vocabulary is the core protocol and a set of extensions. It must not change and may then be used
// concurrently.
type Vocabulary []mcp.Extension

// ResultType reports whether the vocabulary has the result type.
func (v Vocabulary) ResultType(t mcp.ResultType) bool {
	if t == mcp.ResultComplete || t == mcp.ResultInputRequired {
		return true
	}
	return len(v.extensionsWith(t)) > 0
}

// MissingExtension returns the extensions with the result type t, of which a client with the
// capabilities c declares none. ok is true if it declares one. Without an extension that has the
// type, missing is empty and ok is false.
func (v Vocabulary) MissingExtension(t mcp.ResultType, c mcp.ClientCapabilities) (missing mcp.ClientCapabilities, ok bool) {
	extensions := v.extensionsWith(t)
	for _, e := range extensions {
		if _, declared := c.Extensions[e.ID]; declared {
			return missing, true
		}
	}
	return mcp.ClientCapabilities{Extensions: extensions.Declare()}, false
}

// extensionsWith returns the extensions that have the result type.
func (v Vocabulary) extensionsWith(t mcp.ResultType) (found Vocabulary) {
	for _, e := range v {
		if slices.Contains(e.ResultTypes, t) {
			found = append(found, e)
		}
	}
	return found
}

// InputRequest returns the capabilities that a client must declare to be asked r. ok is false if
// the vocabulary lacks the method.
func (v Vocabulary) InputRequest(r mcp.InputRequest) (needs mcp.ClientCapabilities, ok bool) {
	switch r.Method {
	case mcp.MethodElicit:
		return elicitationNeeds(r), true
	case mcp.MethodCreateMessage:
		return samplingNeeds(r), true
	case mcp.MethodListRoots:
		return mcp.ClientCapabilities{Roots: &mcp.RootsCapability{}}, true
	}
	for _, e := range v {
		if needs, ok = e.InputRequests[r.Method]; ok {
			return needs, true
		}
	}
	return needs, false
}

func elicitationNeeds(r mcp.InputRequest) mcp.ClientCapabilities {
	var p mcp.ElicitParams
	_ = mcp.Decode(r.Params, &p)
	if p.Mode == mcp.ElicitURL {
		return mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{URL: &struct{}{}}}
	}
	return mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{}}
}

func samplingNeeds(r mcp.InputRequest) mcp.ClientCapabilities {
	var p mcp.CreateMessageParams
	_ = mcp.Decode(r.Params, &p)
	needs := &mcp.SamplingCapability{}
	if p.Tools != nil || p.ToolChoice != nil {
		needs.Tools = &struct{}{}
	}
	if p.IncludeContext == "thisServer" || p.IncludeContext == "allServers" {
		needs.Context = &struct{}{}
	}
	return mcp.ClientCapabilities{Sampling: needs}
}

// ListenFilter returns the method of the changes that an extension's filter field selects.
func (v Vocabulary) ListenFilter(field string) (method string, ok bool) {
	for _, e := range v {
		if method, ok = e.ListenFilters[field]; ok {
			return method, true
		}
	}
	return "", false
}

// NameField returns the field of the method's params that names its object, or "" if the method has
// none.
func (v Vocabulary) NameField(method string) string {
	switch method {
	case mcp.MethodCallTool, mcp.MethodGetPrompt:
		return "name"
	case mcp.MethodReadResource:
		return "uri"
	}
	for _, e := range v {
		if field, ok := e.NameFields[method]; ok {
			return field
		}
	}
	return ""
}

// Declare returns the extensions in the form of capabilities, or nil without any. The caller owns
// the map.
func (v Vocabulary) Declare() map[string]json.RawMessage {
	if len(v) == 0 {
		return nil
	}
	declared := map[string]json.RawMessage{}
	for _, e := range v {
		declared[e.ID] = e.Settings
		if e.Settings == nil {
			declared[e.ID] = json.RawMessage("{}")
		}
	}
	return declared
}
