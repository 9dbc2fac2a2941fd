// Package link reads the install links of other tools: the URLs behind buttons such as "Add to
// Cursor" or "Install in VS Code". They hold a name and an entry of the tool's own configuration.
package link

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/dowel-mcp/dowel/internal/config"
)

// Is reports whether a text is an install link.
func Is(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return false
	}
	_, _, _, err = read(u, 0)
	return err == nil || !errors.Is(err, errNoLink)
}

var errNoLink = errors.New("it is no install link that dowel knows")

// Parse returns the server of an install link, as an entry of the tool's file.
func Parse(text string) (*config.Server, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("the install link is no URL")
	}
	name, entry, inputs, err := read(u, 0)
	if err != nil {
		return nil, fmt.Errorf("the install link cannot be used: %w", err)
	}
	if name == "" {
		return nil, errors.New("the install link has no name for the server")
	}
	// VS Code's file has the inputs of links; the other tools' entries are valid there too.
	file, path := map[string]any{"servers": map[string]any{name: entry}, "inputs": inputs}, ".vscode/mcp.json"
	if inputs == nil {
		file, path = map[string]any{"mcpServers": map[string]any{name: entry}}, ".cursor/mcp.json"
	}
	raw, err := json.Marshal(file)
	if err != nil {
		return nil, err
	}
	servers := config.ServersIn(path, raw)
	if len(servers) != 1 {
		return nil, errors.New("the install link has no entry of a server")
	}
	return servers[0], nil
}

// maxWraps bounds the links within links.
const maxWraps = 3

// read returns the name, the entry and the inputs of a link.
func read(u *url.URL, depth int) (name string, entry map[string]any, inputs any, err error) {
	query := u.Query()
	if inner := query.Get("url"); depth < maxWraps && inner != "" && query.Get("config") == "" && u.Scheme != "goose" {
		if wrapped, err := url.Parse(inner); err == nil && wrapped.Scheme != "https" && wrapped.Scheme != "http" {
			return read(wrapped, depth+1)
		}
	}
	switch {
	case strings.HasPrefix(u.Scheme, "vscode") && strings.Trim(u.Opaque+u.Path, "/") == "mcp/install":
		text, err := url.PathUnescape(u.RawQuery)
		if err != nil {
			return "", nil, nil, err
		}
		entry, err = decodeEntry(text)
		if err != nil {
			return "", nil, nil, err
		}
		name, _ = entry["name"].(string)
		inputs = entry["inputs"]
		delete(entry, "name")
		delete(entry, "inputs")
		return name, entry, orEmpty(inputs), nil
	case u.Scheme == "goose" && u.Host == "extension":
		return readGoose(query)
	case query.Get("config") != "" && isInstallPath(u):
		entry, err = decodeEntry(query.Get("config"))
		if err != nil {
			return "", nil, nil, err
		}
		if list := query.Get("inputs"); list != "" {
			if err := json.Unmarshal([]byte(list), &inputs); err != nil {
				return "", nil, nil, fmt.Errorf("its inputs are no JSON: %w", err)
			}
		}
		if strings.Contains(u.Host, "vscode") {
			inputs = orEmpty(inputs)
		}
		name = query.Get("name")
		if inner, ok := entry[name].(map[string]any); ok { // some links repeat the name
			entry = inner
		}
		return name, entry, inputs, nil
	}
	return "", nil, nil, errNoLink
}

// isInstallPath reports whether a URL has the form of the links of Cursor, LM Studio, Kiro, VS
// Code's redirects, and tools that follow them.
func isInstallPath(u *url.URL) bool {
	place := u.Host + u.Path
	for _, part := range []string{"mcp/install", "install-mcp", "add_mcp", "mcp/add", "add-mcp"} {
		if strings.Contains(place, part) {
			return true
		}
	}
	return false
}

func orEmpty(inputs any) any {
	if inputs == nil {
		return []any{}
	}
	return inputs
}

// decodeEntry reads a JSON object, which may be in base64.
func decodeEntry(text string) (entry map[string]any, err error) {
	raw := []byte(text)
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		plain := strings.NewReplacer("-", "+", "_", "/", " ", "+", "=", "").Replace(text)
		if raw, err = base64.RawStdEncoding.DecodeString(plain); err != nil {
			return nil, errors.New("its config is neither JSON nor base64")
		}
	}
	if err := json.Unmarshal(raw, &entry); err != nil {
		return nil, fmt.Errorf("its config is no JSON object: %w", err)
	}
	return entry, nil
}

// readGoose reads a link of Goose, which has each word of the command in a parameter. A variable is
// NAME=DESCRIPTION, without a value.
func readGoose(query url.Values) (name string, entry map[string]any, inputs any, err error) {
	name = query.Get("name")
	env := map[string]any{}
	for _, setting := range query["env"] {
		variable, _, _ := strings.Cut(setting, "=")
		env[variable] = "${env:" + variable + "}"
	}
	switch {
	case query.Get("cmd") != "":
		entry = map[string]any{"command": query.Get("cmd"), "args": query["arg"], "env": env}
	case query.Get("url") != "":
		entry = map[string]any{"url": query.Get("url")}
	default:
		return "", nil, nil, errors.New("it has neither cmd nor url")
	}
	return name, entry, nil, nil
}
