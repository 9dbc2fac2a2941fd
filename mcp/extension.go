package mcp

// Extension describes an extension of the protocol, so that transports, servers and clients handle
// its messages without knowing their meaning. Pass it to the options of a server or client.
type Extension struct {
	// ID is the identifier, such as io.modelcontextprotocol/tasks.
	ID string
	// Settings is the object declared under ID in the capabilities; nil means {}.
	Settings Object
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

// Vocabulary is the core protocol and a set of extensions. It does not change and may be used
// concurrently.
type Vocabulary struct {
	extensions []Extension
}

// NewVocabulary returns the vocabulary of the core and the extensions.
func NewVocabulary(extensions ...Extension) *Vocabulary { return &Vocabulary{extensions} }

// ResultType reports whether the vocabulary has the result type.
func (v *Vocabulary) ResultType(t ResultType) bool {
	if t == ResultComplete || t == ResultInputRequired {
		return true
	}
	for _, e := range v.extensions {
		for _, known := range e.ResultTypes {
			if known == t {
				return true
			}
		}
	}
	return false
}

// InputRequest returns the capabilities that a client must declare to be asked r. ok is false if
// the vocabulary lacks the method.
func (v *Vocabulary) InputRequest(r InputRequest) (needs ClientCapabilities, ok bool) {
	switch r.Method {
	case MethodElicit:
		return elicitationNeeds(r), true
	case MethodCreateMessage:
		return samplingNeeds(r), true
	case MethodListRoots:
		return ClientCapabilities{Roots: &RootsCapability{}}, true
	}
	for _, e := range v.extensions {
		if needs, ok = e.InputRequests[r.Method]; ok {
			return needs, true
		}
	}
	return needs, false
}

func elicitationNeeds(r InputRequest) ClientCapabilities {
	var p ElicitParams
	_ = Decode(r.Params, &p)
	if p.Mode == ElicitURL {
		return ClientCapabilities{Elicitation: &ElicitationCapability{URL: &struct{}{}}}
	}
	return ClientCapabilities{Elicitation: &ElicitationCapability{}}
}

func samplingNeeds(r InputRequest) ClientCapabilities {
	var p CreateMessageParams
	_ = Decode(r.Params, &p)
	needs := &SamplingCapability{}
	if p.Tools != nil || p.ToolChoice != nil {
		needs.Tools = &struct{}{}
	}
	if p.IncludeContext == "thisServer" || p.IncludeContext == "allServers" {
		needs.Context = &struct{}{}
	}
	return ClientCapabilities{Sampling: needs}
}

// ListenFilter returns the method of the changes that an extension's filter field selects.
func (v *Vocabulary) ListenFilter(field string) (method string, ok bool) {
	for _, e := range v.extensions {
		if method, ok = e.ListenFilters[field]; ok {
			return method, true
		}
	}
	return "", false
}

// NameField returns the field of the method's params that names its object, or "" if the method has
// none.
func (v *Vocabulary) NameField(method string) string {
	switch method {
	case MethodCallTool, MethodGetPrompt:
		return "name"
	case MethodReadResource:
		return "uri"
	}
	for _, e := range v.extensions {
		if field, ok := e.NameFields[method]; ok {
			return field
		}
	}
	return ""
}

// Declare returns the extensions in the form of capabilities, or nil without any. The caller owns
// the map.
func (v *Vocabulary) Declare() map[string]Object {
	if len(v.extensions) == 0 {
		return nil
	}
	declared := map[string]Object{}
	for _, e := range v.extensions {
		declared[e.ID] = e.Settings
		if e.Settings == nil {
			declared[e.ID] = Object("{}")
		}
	}
	return declared
}
