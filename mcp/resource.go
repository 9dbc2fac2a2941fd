package mcp

// Resource is data that clients read by its URI (server/resources).
type Resource struct {
	URI         string       `json:"uri"`
	Name        string       `json:"name"`
	Title       string       `json:"title,omitzero"`
	Description string       `json:"description,omitzero"`
	MIMEType    string       `json:"mimeType,omitzero"`
	Size        *int64       `json:"size,omitzero"` // bytes, before any encoding
	Icons       []Icon       `json:"icons,omitempty"`
	Annotations *Annotations `json:"annotations,omitzero"`
	Meta        Meta         `json:"_meta,omitempty"`
}

// ResourceTemplate describes a set of resources by an RFC 6570 template.
type ResourceTemplate struct {
	URITemplate string       `json:"uriTemplate"`
	Name        string       `json:"name"`
	Title       string       `json:"title,omitzero"`
	Description string       `json:"description,omitzero"`
	MIMEType    string       `json:"mimeType,omitzero"`
	Icons       []Icon       `json:"icons,omitempty"`
	Annotations *Annotations `json:"annotations,omitzero"`
	Meta        Meta         `json:"_meta,omitempty"`
}

// ListResourcesResult is a page of resources.
type ListResourcesResult struct {
	Meta      Meta       `json:"_meta,omitempty"`
	Resources []Resource `json:"resources"`
	Page
}

// ListResourceTemplatesResult is a page of resource templates.
type ListResourceTemplatesResult struct {
	Meta              Meta               `json:"_meta,omitempty"`
	ResourceTemplates []ResourceTemplate `json:"resourceTemplates"`
	Page
}

// ReadResourceParams names the resource to read.
type ReadResourceParams struct {
	Meta Meta   `json:"_meta,omitempty"`
	URI  string `json:"uri"`
	InputResponseParams
}

// ReadResourceResult holds the contents of a resource, or of its parts.
type ReadResourceResult struct {
	Meta     Meta               `json:"_meta,omitempty"`
	Contents []ResourceContents `json:"contents"`
}

// ResourceContents is text, or binary data if Blob is not nil.
type ResourceContents struct {
	URI      string
	MIMEType string
	Text     string
	Blob     []byte
	Meta     Meta
}
