// Package savedcalls keeps calls of tools by name in a file of a project, dowel.calls.json:
//
//	{"calls": {"todo": {"tool": "files.search", "arguments": {"pattern": "TODO"}}}}
//
// A change edits the smallest span of the file, so its comments and order stay.
package savedcalls

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/tailscale/hujson"
)

// FileName is the name of the file in the folder of a project.
const FileName = "dowel.calls.json"

// maxFile limits the file, in bytes.
const maxFile = 1 << 20

// Call is a saved call.
type Call struct {
	Name      string          `json:"name"`
	Server    string          `json:"server"`
	Tool      string          `json:"tool"` // the server's own name
	Arguments json.RawMessage `json:"arguments"`
}

// Words returns the call as dowel call names it.
func (c Call) Words() string { return c.Server + "." + c.Tool }

// Read returns the calls in the file of a folder, sorted by name. A missing file has none.
func Read(folder string) ([]Call, error) {
	path := filepath.Join(folder, FileName)
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return []Call{}, nil
	}
	if err != nil {
		return nil, err
	}
	var file struct {
		Calls map[string]struct {
			Tool      string
			Arguments json.RawMessage
		}
	}
	plain, err := hujson.Standardize(text)
	if err == nil {
		err = json.Unmarshal(plain, &file)
	}
	if err != nil {
		return nil, fmt.Errorf(`%s: want {"calls": {"NAME": {"tool": "SERVER.TOOL", "arguments": {}}}}: %w`, path, err)
	}
	all := make([]Call, 0, len(file.Calls))
	for _, name := range slices.Sorted(maps.Keys(file.Calls)) {
		e := file.Calls[name]
		server, tool, ok := strings.Cut(e.Tool, ".")
		if !ok || server == "" || tool == "" {
			return nil, fmt.Errorf("%s: the tool of the call %q is %q, want SERVER.TOOL", path, name, e.Tool)
		}
		if len(e.Arguments) == 0 {
			e.Arguments = json.RawMessage("{}")
		}
		all = append(all, Call{name, server, tool, e.Arguments})
	}
	return all, nil
}

// readFile reads a file of at most [maxFile] bytes.
func readFile(path string) ([]byte, error) {
	if err := checkFile(path); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return text, err
}

// checkFile returns an error if a project has something else in the place of its file. A link could
// lead to an endless device, or to a file of the user that a change would damage.
func checkFile(path string) error {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not an ordinary file: dowel follows no links of a project", path)
	}
	return err
}

// Find returns a call by its name.
func Find(folder, name string) (Call, error) {
	all, err := Read(folder)
	if err != nil {
		return Call{}, err
	}
	var names []string
	for _, c := range all {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return Call{}, fmt.Errorf("there are no saved calls: %s is missing or empty. The console saves calls", filepath.Join(folder, FileName))
	}
	return Call{}, fmt.Errorf("no call is saved as %q: want %s", name, strings.Join(names, ", "))
}

// Write saves a call, in place of one with the same name.
func Write(folder string, c Call) error {
	if c.Name == "" || len(c.Name) > maxName || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("want a name of 1 to %d characters on one line", maxName)
	}
	if strings.Contains(c.Server, ".") {
		return fmt.Errorf("the server %q cannot be saved: its name contains a dot", c.Server)
	}
	decoder := json.NewDecoder(bytes.NewReader(c.Arguments))
	decoder.UseNumber() // numbers keep their digits
	var arguments map[string]any
	if err := decoder.Decode(&arguments); err != nil {
		return fmt.Errorf("the arguments are not a JSON object: %w", err)
	}
	entry := edit.Object{{Key: "tool", Value: c.Words()}, {Key: "arguments", Value: arguments}}
	return update(folder, func(text []byte) ([]byte, error) {
		return edit.Set(text, edit.JSON, []string{"calls", c.Name}, entry)
	})
}

// maxName limits the name of a call, in bytes.
const maxName = 80

// Remove removes a call.
func Remove(folder, name string) error {
	if _, err := Find(folder, name); err != nil {
		return err
	}
	return update(folder, func(text []byte) ([]byte, error) { return edit.Remove(text, edit.JSON, []string{"calls", name}) })
}

func update(folder string, change func(text []byte) ([]byte, error)) error {
	path := filepath.Join(folder, FileName)
	if err := checkFile(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err := atomicfile.Update(path, func(old []byte, _ bool) ([]byte, error) {
		now, err := change(old)
		if err == nil && len(now) > maxFile {
			err = fmt.Errorf("%s would be larger than %d bytes", FileName, maxFile)
		}
		return now, err
	}, atomicfile.Options{Perm: 0o600})
	return err
}
