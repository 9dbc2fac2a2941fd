package control

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/dowel-mcp/dowel/internal/savedcalls"
	"github.com/dowel-mcp/dowel/internal/secretmask"
)

// errNoProject is the error of saved calls in a program without a folder.
var errNoProject = errors.New("calls are saved in the folder of a project, and this program has none")

// SavedCall is a saved call as the page writes it: its arguments are JSON text, in which numbers
// keep their digits.
type SavedCall struct {
	Name      string `json:"name"`
	Server    string `json:"server"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
	// WithSecrets saves arguments with the form or the value of a secret, after the user has seen
	// that.
	WithSecrets bool `json:"withSecrets,omitzero"`
}

// savedOutcome is the answer to the request to save a call.
type savedOutcome struct {
	// Masked are the arguments with their secrets masked, if nothing was saved for that reason.
	Masked string `json:"masked,omitzero"`
}

// maskSaved returns the arguments of a call with masked secrets. found is false without a secret.
func (d Running) maskSaved(arguments string) (masked string, found bool) {
	masked = secretmask.Text(arguments)
	for _, u := range d.Hub.Upstreams() {
		if mask := u.Definition().Mask; mask != nil {
			masked = mask(masked)
		}
	}
	return masked, masked != arguments
}

// serveSaving saves a call. Arguments with a secret are saved only if the user has agreed.
func (d Running) serveSaving(w http.ResponseWriter, r *http.Request) {
	var c SavedCall
	err := json.NewDecoder(r.Body).Decode(&c)
	if masked, found := d.maskSaved(c.Arguments); err == nil && found && !c.WithSecrets {
		writeJSON(w, savedOutcome{masked})
		return
	}
	writeResult(w, savedOutcome{}, d.changeSaved("saved/write", c, err, savedcalls.Write))
}

// serveSavedRemoval removes a saved call.
func (d Running) serveSavedRemoval(w http.ResponseWriter, r *http.Request) {
	var c SavedCall
	err := json.NewDecoder(r.Body).Decode(&c)
	writeOutcome(w, d.changeSaved("saved/remove", c, err, func(folder string, c savedcalls.Call) error { return savedcalls.Remove(folder, c.Name) }))
}

// serveSaved answers with the calls that the project's file has, and its path.
func (d Running) serveSaved(w http.ResponseWriter, _ *http.Request) {
	folder := d.Controller.Status().Folder
	if folder == "" {
		writeJSON(w, map[string]any{"calls": []SavedCall{}})
		return
	}
	all, err := savedcalls.Read(folder)
	calls := make([]SavedCall, 0, len(all))
	for _, c := range all {
		calls = append(calls, SavedCall{Name: c.Name, Server: c.Server, Tool: c.Tool, Arguments: string(c.Arguments)})
	}
	writeResult(w, map[string]any{"calls": calls, "folder": folder, "file": savedcalls.FileName}, err)
}

// changeSaved saves or removes a call unless err is set, and writes that to the audit log as
// method.
func (d Running) changeSaved(method string, c SavedCall, err error, change func(folder string, c savedcalls.Call) error) error {
	folder := d.Controller.Status().Folder
	if err == nil && folder == "" {
		err = errNoProject
	}
	if err == nil {
		err = change(folder, savedcalls.Call{Name: c.Name, Server: c.Server, Tool: c.Tool, Arguments: json.RawMessage(c.Arguments)})
	}
	return d.record(method, c.Server, c.Name, err)
}
