// Package tasklist keeps the tasks that the user has started with dowel call --task, and the tasks
// for which conversations of dowel chat, dowel run and the console wait. MCP has no request that
// lists tasks, so the ids are in a file of the state folder. Only the user can read it, because
// with some servers an id is all that is needed to see the task.
package tasklist

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// Entry is a task of a server of the running dowel.
type Entry struct {
	Name    string    `json:"name"` // the user's name of the task: a number
	Server  string    `json:"server"`
	Tool    string    `json:"tool"`
	ID      string    `json:"id"`
	Started time.Time `json:"started"`

	// Conversations are the IDs of the saved conversations that get the end of the task; none for a
	// task of dowel call.
	Conversations []string `json:"conversations,omitempty"`
	// Client is the name of the agent at the running dowel, which owns the task; "" for dowel call.
	Client string `json:"client,omitzero"`
	// Private: the process of the conversation has started the server, and nothing else reaches it.
	Private bool `json:"private,omitzero"`
}

// maxEntries bounds the list. Beyond it, the oldest entry is forgotten.
const maxEntries = 1000

// File is the file of the tasks. Several processes may use it at once.
type File struct{ path string }

// Open returns the file in the state folder. An error says that there is no such folder.
func Open(stateDir string) (File, error) {
	if stateDir == "" {
		return File{}, errors.New("there is no folder for dowel's state, so tasks cannot be kept: set HOME")
	}
	return File{filepath.Join(stateDir, "tasks.json")}, nil
}

// Read returns all tasks, the oldest first.
func (f File) Read() ([]Entry, error) {
	raw, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return f.decodeEntries(raw)
}

// Find returns the task of a name.
func (f File) Find(name string) (Entry, error) {
	all, err := f.Read()
	if err != nil {
		return Entry{}, err
	}
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, exit.UsageError{Err: fmt.Errorf("there is no task called %q", name), See: "dowel task list"}
	}
	return all[i], nil
}

// Add keeps a task and returns it with its new name, a number above all others in the list.
func (f File) Add(e Entry) (Entry, error) {
	e.Started = time.Now().UTC().Truncate(time.Second)
	err := f.change(func(all []Entry) []Entry {
		e.Name = nextName(all)
		return appendEntry(all, e)
	})
	return e, err
}

// nextName returns a number above all others in the list.
func nextName(all []Entry) string {
	highest := 0
	for _, other := range all {
		if n, err := strconv.Atoi(other.Name); err == nil {
			highest = max(highest, n)
		}
	}
	return strconv.Itoa(highest + 1)
}

func appendEntry(all []Entry, e Entry) []Entry {
	all = append(all, e)
	return all[max(0, len(all)-maxEntries):]
}

// Forget removes tasks by their ids.
func (f File) Forget(ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	return f.change(func(all []Entry) []Entry {
		return slices.DeleteFunc(all, func(e Entry) bool { return slices.Contains(ids, e.ID) })
	})
}

func (f File) change(edit func([]Entry) []Entry) error {
	_, err := atomicfile.Update(f.path, func(old []byte, exists bool) ([]byte, error) {
		var all []Entry
		if exists {
			var err error
			if all, err = f.decodeEntries(old); err != nil {
				return nil, err
			}
		}
		return json.MarshalIndent(edit(all), "", "  ")
	}, atomicfile.Options{Perm: 0o600, FolderPerm: 0o700})
	return err
}

func (f File) decodeEntries(raw []byte) (all []Entry, err error) {
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("%s is not a list of tasks (%w): correct it, or remove it to forget its tasks", f.path, err)
	}
	return all, nil
}
