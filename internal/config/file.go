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

// File is a file that was read, or would have been.
type File struct {
	Path    string
	Dialect string
	Scope   Scope
	// Hash is that of the content, as [HashText] makes it; empty where there is none.
	Hash string
	// Missing: there is no such file. It may appear later.
	Missing bool
	// Broken: the file, or the place for servers in it, cannot be read, so that nothing is known of its servers.
	Broken bool
	// Empty: there is nothing in the file, which may be about to be written.
	Empty bool
	// Lists: the file has a place for servers, which may be empty.
	Lists bool
}

// HashText returns the hash of a file's content, which tells whether it has changed.
func HashText(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// fileReader reads one file.
type fileReader struct {
	d        *Dialect
	source   Source
	problems []Problem
	local    *node // what Claude Code keeps about the project, in the user's file
	asked    []Input
}

// contents are what a file says.
type contents struct {
	File
	servers, local []*Server // local are those that Claude Code keeps for one project only
	inputs         []Input
	gateway        Gateway
	models         []*Model
	model          string // the chosen one's name
	modelAt        Position
	problems       []Problem
}

// readFile reads the file of a place; d is nil where the dialect has to be told from the file.
func readFile(place Place, d *Dialect, o Options) contents {
	c := contents{File: File{Path: place.Path, Scope: place.Scope}}
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
		c.problems = []Problem{{Severity: Error, Position: Position{Path: place.Path}, Message: "the file cannot be read: " + reason(err)}}
		return c
	}
	c.Hash, c.Empty = HashText(text), len(bytes.TrimSpace(text)) == 0
	return c.read(text, d, o)
}

// reason is an error of the file system without the path, which is named already.
func reason(err error) string {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return err.Error()
}

// readText reads at most one byte more than the limit.
func readText(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}

func (c contents) read(text []byte, d *Dialect, o Options) contents {
	root, problems := parse(c.Path, text)
	if d == nil {
		d = detect(c.Path, root)
		c.Dialect = d.Name
	}
	r := &fileReader{d: d, source: Source{Path: c.Path, Dialect: d.Name, Scope: c.Scope}, problems: problems}
	if root != nil && root.kind != objectNode {
		r.errorf(root.at, fmt.Sprintf("write an object that has the key %q", strings.Join(d.key(base(c.Path)), ".")), "the file holds %v", root.kind)
		root = nil
	}
	if root == nil {
		c.Broken, c.problems = true, r.problems
		return c
	}
	r.asked = r.inputs(root.member("inputs"))
	c.inputs, c.servers = r.asked, r.servers(root)
	place := root.path(d.key(base(c.Path))...)
	c.Lists = len(c.servers) > 0 || place != nil
	c.Broken = place != nil && place.kind != objectNode && place.kind != arrayNode && place.kind != nullNode
	r.localSection(root, o)
	c.local = r.section("mcpServers", r.local.member("mcpServers"), nil)
	r.disable(slices.Concat(c.servers, c.local), root, r.local)
	if d.own() {
		c.gateway = r.gateway(root.member("gateway"))
		c.models = r.models(root.member("models"))
		c.model, c.modelAt = r.chosen(root.member("model"))
		r.strangers(root)
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

// otherKeys are where other tools have their servers: people copy entries from one file to another.
var otherKeys = []string{"mcpServers", "servers", "mcp_servers", "context_servers"}

// servers reads those under the dialect's key, those under the key of another tool, and those under none.
func (r *fileReader) servers(root *node) []*Server {
	keys := r.d.key(base(r.source.Path))
	name := strings.Join(keys, ".")
	found := r.section(name, root.path(keys...), nil)
	for _, m := range root.members {
		if key := m.key.text; key == keys[0] || !slices.Contains(otherKeys, key) || !slices.ContainsFunc(values(m.value), looksLikeServer) {
			continue
		}
		r.warnf(m.key.at, fmt.Sprintf("rename it to %q", name), "%s reads its servers from %q, not from %q", r.d.Title, name, m.key.text)
		found = r.section(m.key.text, m.value, found)
	}
	if len(found) == 0 && len(root.members) > 0 && !slices.ContainsFunc(values(root), func(n *node) bool { return !looksLikeServer(n) }) {
		r.warnf(root.at, fmt.Sprintf("put them into %q", name), "the servers stand at the top of the file, where %s does not read them", r.d.Title)
		found = r.section("the file", root, nil)
	}
	return found
}

func values(n *node) []*node {
	all := slices.Clone(n.items)
	for _, m := range n.members {
		all = append(all, m.value)
	}
	return all
}

func looksLikeServer(n *node) bool {
	return slices.ContainsFunc([]string{"command", "cmd", "url", "serverUrl", "httpUrl"}, func(key string) bool { return n.member(key) != nil })
}

// section reads the servers of an object, or of a list whose items have names, and adds them to those found.
func (r *fileReader) section(name string, n *node, found []*Server) []*Server {
	switch {
	case n == nil || n.kind == nullNode:
	case n.kind == objectNode:
		for _, m := range n.members {
			found = r.add(found, m.key, m.value)
		}
	case n.kind == arrayNode:
		for i, item := range n.items {
			key := item.member("name")
			if !key.is(stringNode) || key.text == "" {
				r.errorf(item.at, `add "name"`, "entry %d of %s has no name", i+1, name)
				continue
			}
			found = r.add(found, &node{kind: stringNode, text: key.text, at: item.at}, item)
		}
	default:
		r.errorf(n.at, `write an object such as {"NAME": {"command": "npx"}}`, "%s must be an object of servers, not %v", name, n.kind)
	}
	return found
}

// maxServers bounds what one file can ask for.
const maxServers = 5000

func (r *fileReader) add(found []*Server, name, n *node) []*Server {
	if len(found) == maxServers {
		return found
	}
	s := readEntry(name, n, r.source, r.d, r.asked)
	if s.Name == "" { // nothing can refer to it
		r.problems = append(r.problems, s.Problems...)
		return found
	}
	if len(found) == maxServers-1 {
		r.errorf(s.At, "", "a file may hold %d servers; those behind this one are not read", maxServers)
	}
	if i := slices.IndexFunc(found, func(other *Server) bool { return other.Name == s.Name }); i >= 0 {
		r.errorf(s.At, "rename one of them", "there are two servers called %q; the one in line %d counts", s.Name, found[i].At.Line)
		return found
	}
	return append(found, s)
}

// localSection finds what Claude Code keeps about the project.
func (r *fileReader) localSection(root *node, o Options) {
	projects := root.member("projects")
	if r.d.Name != ClaudeCode || o.Project == "" || !projects.is(objectNode) {
		return
	}
	same := func(path string) bool { return filepath.Clean(path) == filepath.Clean(o.Project) }
	if o.GOOS == "windows" {
		same = func(path string) bool { return strings.EqualFold(o.native(path), o.native(o.Project)) }
	}
	for _, m := range projects.members {
		if same(m.key.text) && m.value.is(objectNode) {
			r.local = m.value
		}
	}
}

// disable heeds Claude Code's list of servers that are off.
func (r *fileReader) disable(servers []*Server, sections ...*node) {
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
				s.Disabled, s.places["disabled"] = true, list.items[i].at
			}
		}
	}
}

// strangers warns of keys at the top of an own file that mean nothing.
func (r *fileReader) strangers(root *node) {
	known := []string{"mcpServers", "gateway", "inputs", "models", "model"}
	for _, m := range root.members {
		key := m.key.text
		if slices.Contains(known, key) || slices.Contains(otherKeys, key) || strings.HasPrefix(key, "$") || strings.HasPrefix(key, "x-") {
			continue
		}
		hint := suggest(key, known)
		if looksLikeServer(m.value) {
			if root.member("mcpServers") == nil {
				continue // all of the file is like that, which was said already
			}
			hint = `move it into "mcpServers" if it is a server`
		}
		r.warnf(m.key.at, hint, "unknown key %q: the key means nothing to dowel", key)
	}
}
