package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// Server is a server.json document.
type Server struct {
	Name        string `json:"name"` // reverse DNS with one slash
	Title       string `json:"title,omitzero"`
	Description string `json:"description"`
	Version     string `json:"version"`
	WebsiteURL  string `json:"websiteUrl,omitzero"`
	Repository  struct {
		URL string `json:"url,omitzero"`
	} `json:"repository,omitzero"`
	Packages []pkg     `json:"packages,omitzero"`
	Remotes  []address `json:"remotes,omitzero"`
}

// Entry is a server with the metadata of the official registry.
type Entry struct {
	Server Server
	// Status is active, deprecated or deleted. StatusMessage explains it. Both may be empty.
	Status, StatusMessage string
}

// pkg is a package of a server in a package registry.
type pkg struct {
	Type             string     `json:"registryType"`
	BaseURL          string     `json:"registryBaseUrl,omitzero"`
	Identifier       string     `json:"identifier"`
	Version          string     `json:"version,omitzero"`
	FileSHA256       string     `json:"fileSha256,omitzero"`
	RuntimeHint      string     `json:"runtimeHint,omitzero"`
	Transport        address    `json:"transport,omitzero"`
	RuntimeArguments []argument `json:"runtimeArguments,omitzero"`
	PackageArguments []argument `json:"packageArguments,omitzero"`
	Environment      []keyValue `json:"environmentVariables,omitzero"`
}

// address is a transport: stdio, or a URL template with headers.
type address struct {
	Type      string           `json:"type"`
	URL       string           `json:"url,omitzero"`
	Headers   []keyValue       `json:"headers,omitzero"`
	Variables map[string]input `json:"variables,omitzero"`
}

// input is a value of a document: fixed by Value, perhaps with {variables}, or given by the user.
type input struct {
	Description string           `json:"description,omitzero"`
	IsRequired  bool             `json:"isRequired,omitzero"`
	IsSecret    bool             `json:"isSecret,omitzero"`
	Format      string           `json:"format,omitzero"`
	Value       string           `json:"value,omitzero"`
	Default     string           `json:"default,omitzero"`
	Placeholder string           `json:"placeholder,omitzero"`
	Choices     []string         `json:"choices,omitzero"`
	Variables   map[string]input `json:"variables,omitzero"`
}

// keyValue is an environment variable or a header.
type keyValue struct {
	Name string `json:"name"`
	input
}

// argument is a command-line argument: positional, or named with its leading dashes.
type argument struct {
	Type       string `json:"type"`
	Name       string `json:"name,omitzero"`
	ValueHint  string `json:"valueHint,omitzero"`
	IsRepeated bool   `json:"isRepeated,omitzero"`
	input
}

// Parse reads a server.json file. It accepts the names in snake_case that files before September
// 2025 have.
func Parse(text []byte) (Entry, error) {
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return Entry{}, fmt.Errorf("no server.json file: %w", err)
	}
	if inner, ok := document["server"].(map[string]any); ok && document["name"] == nil {
		document = inner // an answer of a registry
	}
	modernize(document)
	text, err := json.Marshal(document)
	if err != nil {
		return Entry{}, err
	}
	var e Entry
	if err := json.Unmarshal(text, &e.Server); err != nil {
		return Entry{}, fmt.Errorf("no server.json file: %w", err)
	}
	return e, e.Server.check()
}

// namePattern is the form of names that the schema of server.json demands.
var namePattern = lazyregexp.New(`^[A-Za-z0-9.-]+/[A-Za-z0-9._-]+$`)

// check returns an error unless the document can be used.
func (s *Server) check() error {
	switch {
	case !namePattern().MatchString(s.Name) || strings.HasSuffix(s.Name, "/.") || strings.HasSuffix(s.Name, "/.."):
		return fmt.Errorf("the server's name is %q, want one as io.github.owner/name", s.Name)
	case len(s.Packages)+len(s.Remotes) == 0:
		return errors.New("the document names neither a package nor an address of the server")
	}
	return nil
}

// renamed are the members of older documents with a new name.
var renamed = map[string]string{
	"registry_name": "registryType", "transport_type": "type", "file_sha256": "fileSha256", "is_required": "isRequired",
	"is_secret": "isSecret", "is_repeated": "isRepeated", "value_hint": "valueHint", "runtime_hint": "runtimeHint",
	"runtime_arguments": "runtimeArguments", "package_arguments": "packageArguments", "environment_variables": "environmentVariables",
	"registry_base_url": "registryBaseUrl", "registry_type": "registryType", "website_url": "websiteUrl",
}

// modernize renames the members of an older document. Members of maps with names of the author
// stay.
func modernize(object map[string]any) {
	if detail, ok := object["version_detail"].(map[string]any); ok && object["version"] == nil {
		object["version"] = detail["version"]
	}
	if _, old := object["registry_name"]; old && object["identifier"] == nil {
		object["identifier"] = object["name"]
	}
	if t, ok := object["transport_type"].(string); ok && t == "streamable" {
		object["transport_type"] = "streamable-http"
	}
	for from, to := range renamed {
		if value, ok := object[from]; ok && object[to] == nil {
			object[to] = value
			delete(object, from)
		}
	}
	for key, value := range object {
		switch key {
		case "_meta":
		case "variables":
			named, _ := value.(map[string]any)
			for _, one := range named {
				modernizeAny(one)
			}
		default:
			modernizeAny(value)
		}
	}
}

func modernizeAny(value any) {
	switch value := value.(type) {
	case map[string]any:
		modernize(value)
	case []any:
		for _, one := range value {
			modernizeAny(one)
		}
	}
}
