package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// File is a configuration file that Load looked for.
type File struct {
	Path    string
	Dialect string
	Scope   Scope
	// Hash is the [HashText] of the content, or "" without content.
	Hash string
	// Missing means that the file does not exist. It may appear later.
	Missing bool
	// Broken means that the file, or its list of servers, cannot be read. Its servers are unknown.
	Broken bool
	// Empty means that the file has no content. A program may be about to write it.
	Empty bool
	// Lists means that the file has a list of servers, which may be empty.
	Lists bool
}

// HashText returns the hash of a file's content, for detecting changes.
func HashText(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// fileReader reads one file.
type fileReader struct {
	d              *Dialect
	source         Source
	problems       []Problem
	local          *node // Claude Code's section for the project in the user's file; may be nil
	declaredInputs []Input
}

// fileContents is the parsed content of a file.
type fileContents struct {
	File
	servers, local []*Server // local are Claude Code's servers for this project only
	inputs         []Input
	gateway        Gateway
	models         []*Model
	definitions    definitionsChoice
	model          string // the name in the key model
	modelAt        Position
	problems       []Problem
}

// readFile reads the file at a place. If d is nil, the dialect is detected.
func readFile(place Place, d *Dialect, o Options) fileContents {
	c := fileContents{File: File{Path: place.Path, Scope: place.Scope}}
	if d != nil {
		c.Dialect = d.Name
	}
	text, err := readText(place.Path, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		c.Missing = true
		return c
	case err != nil:
		c.Broken = true
		c.problems = []Problem{{Severity: Error, Position: Position{Path: place.Path}, Message: "the file cannot be read: " + errorWithoutPath(err)}}
		return c
	}
	c.Hash, c.Empty = HashText(text), len(bytes.TrimSpace(text)) == 0
	return c.parseText(text, d, o)
}

// errorWithoutPath returns the text of a file error without the path.
func errorWithoutPath(err error) string {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return err.Error()
}

// errPipe is the error for a named pipe. To open it waits until another program writes.
var errPipe = errors.New("it is a named pipe: want a regular file")

// readText reads a file, but at most limit+1 bytes. It reads pipes only if this process has them
// open, such as /dev/fd/63 of a shell's <(…).
func readText(path string, limit int64) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.Mode()&fs.ModeNamedPipe != 0 && !strings.HasPrefix(path, "/dev/fd/") && !strings.HasPrefix(path, "/proc/self/fd/") {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errPipe}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// parseText parses the file's text and reads its sections.
func (c fileContents) parseText(text []byte, d *Dialect, o Options) fileContents {
	root, problems := parseFile(c.Path, text)
	if d == nil {
		d = detectDialect(c.Path, root)
		c.Dialect = d.Name
	}
	r := &fileReader{d: d, source: Source{Path: c.Path, Dialect: d.Name, Scope: c.Scope}, problems: problems}
	if root != nil && root.kind != objectNode {
		r.errorf(root.at, fmt.Sprintf("write an object that has the key %q", strings.Join(d.serversKey(baseName(c.Path)), ".")), "the file holds %v", root.kind)
		root = nil
	}
	if root == nil {
		c.Broken, c.problems = true, r.problems
		return c
	}
	key := d.serversKey(baseName(c.Path))
	r.declaredInputs = r.readInputs(root.path(append(slices.Clone(key[:len(key)-1]), "inputs")...))
	c.inputs, c.servers = r.declaredInputs, r.readServers(root)
	place := root.path(key...)
	c.Lists = len(c.servers) > 0 || place != nil
	c.Broken = place != nil && place.kind != objectNode && place.kind != arrayNode && place.kind != nullNode
	r.findLocalSection(root, o)
	c.local = r.readSection("mcpServers", r.local.member("mcpServers"), nil)
	r.applyDisabledList(slices.Concat(c.servers, c.local), root, r.local)
	if d.isOwn() {
		c.gateway = r.readGateway(root.member("gateway"))
		c.models = r.readModels(root.member("models"))
		c.model, c.modelAt = r.readModelChoice(root.member("model"))
		c.definitions = r.readDefinitionsChoice(root.member("definitions"))
		r.warnUnknownKeys(root)
	}
	c.problems = r.problems
	for _, s := range c.servers {
		c.problems = append(c.problems, s.Problems...)
	}
	return c
}

func (r *fileReader) errorf(at Position, hint, format string, args ...any) {
	r.problems = append(r.problems, Problem{Severity: Error, Position: at, Message: fmt.Sprintf(format, args...), Hint: hint})
}

func (r *fileReader) warnf(at Position, hint, format string, args ...any) {
	r.problems = append(r.problems, Problem{Severity: Warning, Position: at, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// otherKeys are the keys under which other tools list servers. People copy entries between files.
var otherKeys = []string{"mcpServers", "servers", "mcp_servers", "context_servers"}

// readServers reads the servers under the dialect's key, under the keys of other tools, and at the
// top level.
func (r *fileReader) readServers(root *node) []*Server {
	keys := r.d.serversKey(baseName(r.source.Path))
	name := strings.Join(keys, ".")
	found := r.readSection(name, root.path(keys...), nil)
	for _, m := range root.members {
		if key := m.key.text; key == keys[0] || !slices.Contains(otherKeys, key) || !slices.ContainsFunc(childValues(m.value), looksLikeServer) {
			continue
		}
		r.warnf(m.key.at, fmt.Sprintf("rename it to %q", name), "%s reads its servers from %q, not from %q", r.d.Title, name, m.key.text)
		found = r.readSection(m.key.text, m.value, found)
	}
	if len(found) == 0 && len(root.members) > 0 && !slices.ContainsFunc(childValues(root), func(n *node) bool { return !looksLikeServer(n) }) {
		r.warnf(root.at, fmt.Sprintf("put them into %q", name), "the servers are at the top level of the file, where %s does not read them", r.d.Title)
		found = r.readSection("the file", root, nil)
	}
	return found
}

func childValues(n *node) []*node {
	all := slices.Clone(n.items)
	for _, m := range n.members {
		all = append(all, m.value)
	}
	return all
}

// looksLikeServer reports whether an object has a key that only server entries have.
func looksLikeServer(n *node) bool {
	return slices.ContainsFunc([]string{"command", "cmd", "url", "serverUrl", "httpUrl"}, func(key string) bool { return n.member(key) != nil })
}

// readSection appends the servers of an object, or of a list of objects with names, to found.
func (r *fileReader) readSection(name string, n *node, found []*Server) []*Server {
	switch {
	case n == nil || n.kind == nullNode:
	case n.kind == objectNode:
		for _, m := range n.members {
			found = r.addServer(found, m.key, m.value)
		}
	case n.kind == arrayNode:
		for i, item := range n.items {
			key := item.member("name")
			if !key.is(stringNode) || key.text == "" {
				r.errorf(item.at, `add "name"`, "entry %d of %s has no name", i+1, name)
				continue
			}
			found = r.addServer(found, &node{kind: stringNode, text: key.text, at: item.at}, item)
		}
	default:
		r.errorf(n.at, `write an object such as {"NAME": {"command": "npx"}}`, "%s must be an object of servers, not %v", name, n.kind)
	}
	return found
}

// maxServers limits the servers of one file.
const maxServers = 5000

// addServer reads a server and appends it to found. Of two servers with one name, the first counts.
func (r *fileReader) addServer(found []*Server, name, n *node) []*Server {
	if len(found) == maxServers {
		return found
	}
	s := readEntry(name, n, r.source, r.d, r.declaredInputs)
	if s.Name == "" { // cannot be referred to
		r.problems = append(r.problems, s.Problems...)
		return found
	}
	if len(found) == maxServers-1 {
		r.errorf(s.At, "", "a file may hold %d servers; the ones after this one are not read", maxServers)
	}
	if i := slices.IndexFunc(found, func(other *Server) bool { return other.Name == s.Name }); i >= 0 {
		r.errorf(s.At, "rename one of them", "two servers are called %q; the one in line %d counts", s.Name, found[i].At.Line)
		return found
	}
	return append(found, s)
}

// findLocalSection finds Claude Code's section for the project.
func (r *fileReader) findLocalSection(root *node, o Options) {
	projects := root.member("projects")
	if r.d.Name != ClaudeCode || o.Project == "" || !projects.is(objectNode) {
		return
	}
	same := func(path string) bool { return filepath.Clean(path) == filepath.Clean(o.Project) }
	if o.GOOS == "windows" {
		same = func(path string) bool { return strings.EqualFold(o.nativePath(path), o.nativePath(o.Project)) }
	}
	for _, m := range projects.members {
		if same(m.key.text) && m.value.is(objectNode) {
			r.local = m.value
		}
	}
}

// applyDisabledList applies Claude Code's list of disabled servers.
func (r *fileReader) applyDisabledList(servers []*Server, sections ...*node) {
	if r.d.Name != ClaudeCode {
		return
	}
	for _, section := range sections {
		list := section.member("disabledMcpServers")
		if !list.is(arrayNode) {
			continue
		}
		for _, s := range servers {
			if i := slices.IndexFunc(list.items, func(n *node) bool { return n.is(stringNode) && n.text == s.Name }); i >= 0 {
				s.Disabled, s.positions["disabled"] = true, list.items[i].at
			}
		}
	}
}

// warnUnknownKeys warns of unknown keys at the top level of dowel's own files.
func (r *fileReader) warnUnknownKeys(root *node) {
	known := []string{"mcpServers", "gateway", "inputs", "models", "model", "definitions"}
	for _, m := range root.members {
		key := m.key.text
		if slices.Contains(known, key) || slices.Contains(otherKeys, key) || strings.HasPrefix(key, "$") || strings.HasPrefix(key, "x-") {
			continue
		}
		hint := suggestName(key, known)
		if looksLikeServer(m.value) {
			if root.member("mcpServers") == nil {
				continue // the whole file is like that, which was reported already
			}
			hint = `move it into "mcpServers" if it is a server`
		}
		r.warnf(m.key.at, hint, "unknown key %q: dowel does not know this key", key)
	}
}
