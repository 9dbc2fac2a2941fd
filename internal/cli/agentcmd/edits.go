package agentcmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/mcp"
)

// Bounds of the edits that can be undone.
const (
	maxEdits    = 50
	maxEditFile = 4 << 20 // bytes; a change of a larger file is not noted
)

// fileEdit is a change that a call of the files server has made.
type fileEdit struct {
	path          string // absolute, without links
	before, after []byte
	isNew         bool // the file was absent before
	// impossible describes a change that cannot be undone. Then the other fields are empty.
	impossible string
}

// impossibleTools are the tools of a files server that change files and cannot be undone.
var impossibleTools = []string{"move", "delete"}

// editRecorder notes the changes of the tools write and edit of a files server, so that the user
// can undo them. It is safe for concurrent use.
type editRecorder struct {
	folder string // in which the servers work; "" means the current folder

	mu    sync.Mutex // guards edits
	edits []fileEdit // the latest one comes last
}

// fileCall is the input of a call of write or edit.
type fileCall struct {
	Path    string  `json:"path"`
	Content *string `json:"content"`
}

// watchCall looks at the file that a call is about to change. The result must be called with the
// result of the call.
func (r *editRecorder) watchCall(use mcp.ToolUse) (noteEdit func(*mcp.CallToolResult)) {
	ignore := func(*mcp.CallToolResult) {}
	name := toolname.Qualified(use.Name)
	tool := name[strings.LastIndexByte(name, '.')+1:]
	var call fileCall
	if slices.Contains(impossibleTools, tool) {
		return func(result *mcp.CallToolResult) {
			if result != nil && !result.IsError && len(result.StructuredContent) > 0 {
				r.addEdit(fileEdit{impossible: toolname.Display(use.Name)})
			}
		}
	}
	if tool != "write" && tool != "edit" || json.Unmarshal(use.Input, &call) != nil || call.Path == "" {
		return ignore
	}
	path := call.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.folder, path)
	}
	before, isNew, err := readEditable(path)
	if err != nil {
		return func(result *mcp.CallToolResult) {
			if result != nil && !result.IsError {
				r.addEdit(fileEdit{impossible: toolname.Display(use.Name) + " of " + path})
			}
		}
	}
	return func(result *mcp.CallToolResult) {
		if result != nil && !result.IsError && confirmsEdit(tool, isNew, result) {
			r.recordEdit(path, before, isNew, call.Content)
		}
	}
}

// confirmsEdit reports whether a result is one of the files server, and says that it has changed
// the file.
func confirmsEdit(tool string, isNew bool, result *mcp.CallToolResult) bool {
	var said struct {
		Path    string `json:"path"`
		Created *bool  `json:"created"`
		Changed *bool  `json:"changed"`
		Size    *int   `json:"size"`
		Count   *int   `json:"count"`
	}
	if json.Unmarshal(result.StructuredContent, &said) != nil || said.Path == "" {
		return false
	}
	if tool == "write" {
		return said.Size != nil && said.Created != nil && *said.Created == isNew
	}
	return said.Count != nil && said.Changed != nil && *said.Changed
}

// recordEdit adds an edit, unless the file does not hold what the call has written: then the server
// has changed another file, or another program has changed this one since.
func (r *editRecorder) recordEdit(path string, before []byte, isNew bool, written *string) {
	after, absent, err := readEditable(path)
	if err != nil || absent || !isNew && bytes.Equal(before, after) || written != nil && string(after) != *written {
		return
	}
	if path, err = filepath.EvalSymlinks(path); err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return
	}
	r.addEdit(fileEdit{path: path, before: before, after: after, isNew: isNew})
}

func (r *editRecorder) addEdit(e fileEdit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.edits = append(r.edits, e); len(r.edits) > maxEdits {
		r.edits = r.edits[1:]
	}
}

// readEditable reads a regular file of at most maxEditFile bytes. absent reports that there is
// none.
func readEditable(path string) (content []byte, absent bool, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, true, nil
	case err != nil:
		return nil, false, err
	case !info.Mode().IsRegular() || info.Size() > maxEditFile:
		return nil, false, errors.New("no regular file, or a large one")
	}
	content, err = os.ReadFile(path)
	return content, false, err
}

// UndoEdit takes back the latest change of a file by a files server, and describes the outcome. It
// returns an error, and changes nothing, if no server has changed a file, if the change cannot be
// undone, or if the file has changed since. In the last two cases the next call takes back the
// change before.
func (r *Runtime) UndoEdit() (outcome string, err error) { return r.parts.tools.edits.undo() }

func (r *editRecorder) undo() (outcome string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.edits) == 0 {
		return "", exit.Usagef("there is no edit to undo: only changes that the tools write and edit of a files server made in this conversation can be undone")
	}
	last := r.edits[len(r.edits)-1]
	r.edits = r.edits[:len(r.edits)-1]
	if last.impossible != "" {
		return "", exit.Usagef("the latest change, %s, cannot be undone; /undo again takes back the one before", last.impossible)
	}
	if err := last.undo(); err != nil {
		return "", err
	}
	if last.isNew {
		return "removed " + last.path + ", which was new", nil
	}
	return "restored " + last.path, nil
}

func (e *fileEdit) undo() error {
	changed := exit.Usagef("%s has changed since the edit: it was left as it is; /undo again takes back the edit before", e.path)
	if e.isNew {
		now, absent, err := readEditable(e.path)
		switch {
		case err != nil:
			return fmt.Errorf("%s cannot be read: %w", e.path, err)
		case absent || !bytes.Equal(now, e.after):
			return changed
		}
		return os.Remove(e.path)
	}
	_, err := atomicfile.Update(e.path, func(now []byte, exists bool) ([]byte, error) {
		if !exists || !bytes.Equal(now, e.after) {
			return nil, changed
		}
		return e.before, nil
	}, atomicfile.Options{})
	return err
}
