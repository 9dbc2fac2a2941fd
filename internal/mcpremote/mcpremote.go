// Package mcpremote reads command lines that start the npm package mcp-remote. It carries MCP
// between stdio and a URL, for clients that cannot connect to URLs or log in. dowel can do both, so
// an entry with the URL replaces such a command.
package mcpremote

import (
	"fmt"
	"path"
	"strings"
)

// Remote is the server that an mcp-remote connects to.
type Remote struct {
	URL string
	// Transport is "http" or "sse" if the command line allows no other, else "".
	Transport string
	// Headers are the header fields of each request.
	Headers map[string]string
	// Resource is the value of the parameter resource of a login, or "".
	Resource string
}

// Parse reads the command line of a process. found is false if it does not start mcp-remote. err
// names an option of mcp-remote that an entry with a URL cannot express.
func Parse(command string, args []string) (r Remote, found bool, err error) {
	words := append([]string{command}, args...)
	start := -1
	for i, word := range words {
		if isPackage(word) {
			start = i // npx -p mcp-remote mcp-remote names it twice
		}
	}
	if start < 0 || start+1 >= len(words) {
		return Remote{}, false, nil
	}
	r.Headers = map[string]string{}
	err = r.readArguments(words[start+1:])
	if !strings.HasPrefix(r.URL, "https://") && !strings.HasPrefix(r.URL, "http://") {
		return Remote{}, false, nil
	}
	return r, true, err
}

// isPackage reports whether a word names the package, such as mcp-remote@latest, or its program.
func isPackage(word string) bool {
	name := path.Base(strings.ReplaceAll(word, `\`, "/"))
	name, _, _ = strings.Cut(name, "@")
	return strings.TrimSuffix(name, ".cmd") == "mcp-remote"
}

// ignoredOptions are the options that concern the process itself, and whether a value follows.
// dowel does not need them.
var ignoredOptions = map[string]bool{
	"--allow-http": false, "--debug": false, "--silent": false, "--enable-proxy": false, "--keep-alive": false, "--ipv4": false,
	"--host": true, "--callback-path": true, "--auth-success-url": true, "--auth-timeout": true, "--ping-interval": true,
	"--connect-timeout": true, "--body-timeout": true, "--headers-timeout": true, "--protocol": true,
}

// readArguments reads the arguments of mcp-remote: a URL, perhaps a port for its callback, and
// options.
func (r *Remote) readArguments(args []string) error {
	var unknown error
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		hasValue, ignored := ignoredOptions[word]
		switch {
		case !strings.HasPrefix(word, "-"):
			if r.URL == "" {
				r.URL = word
			}
			continue
		case ignored && !hasValue:
			continue
		case len(args) == 0 || !ignored && !r.readOption(word, args[0]):
			if unknown == nil {
				unknown = fmt.Errorf("an entry with a URL has nothing for the option %s of mcp-remote", word)
			}
			continue
		}
		args = args[1:]
	}
	return unknown
}

// readOption reads an option with its value. It returns false for an unknown one.
func (r *Remote) readOption(option, value string) bool {
	switch option {
	case "--header":
		name, text, ok := strings.Cut(value, ":")
		if ok {
			r.Headers[strings.TrimSpace(name)] = strings.TrimSpace(text)
		}
		return ok
	case "--resource":
		r.Resource = value
	case "--transport":
		r.Transport = map[string]string{"http-only": "http", "sse-only": "sse"}[value]
	default:
		return false
	}
	return true
}
