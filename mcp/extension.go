package mcp

// Extension describes what an extension adds to the protocol, so that edges, servers and clients understand it without
// knowing it. Give it to the options of a server or client; the core's own entries are always there.
type Extension struct {
	// ID is the extension's identifier, such as io.modelcontextprotocol/tasks.
	ID string
	// Settings is what is declared under the ID in capabilities: an object; nil is {}.
	Settings Object
	// ResultTypes are result types that the extension adds.
	ResultTypes []ResultType
	// ListenFilters maps fields that the extension adds to a listen filter to the method of the change they ask for.
	ListenFilters map[string]string
	// InputRequests maps methods of input requests that the extension adds to what a client must declare.
	InputRequests map[string]ClientCapabilities
	// NameFields maps methods to the field of params that the Mcp-Name header mirrors.
	NameFields map[string]string
}

// Vocabulary is what an endpoint understands: the core and its extensions. It does not change.
type Vocabulary struct {
	extensions []Extension
}

// NewVocabulary returns the vocabulary of the core and the given extensions.
func NewVocabulary(extensions ...Extension) *Vocabulary { return &Vocabulary{extensions} }

// ResultType reports whether results of the type can be understood.
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

// InputRequest returns what a client must declare to be asked this, and whether it can be asked at all.
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

// ListenFilter returns the method of the change that an extension's filter field asks for.
func (v *Vocabulary) ListenFilter(field string) (method string, ok bool) {
	for _, e := range v.extensions {
		if method, ok = e.ListenFilters[field]; ok {
			return method, true
		}
	}
	return "", false
}

// NameField returns the field of the method's params that names its object, empty if there is none.
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

// Declare returns the extensions as capabilities declare them, in a map of the caller's own; nil if there are none.
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
