package control

import (
	"encoding/json"
	"net/http"

	"github.com/dowel-mcp/dowel/internal/config/draft"
)

// maxConfigBody limits a change of a configuration file, in bytes.
const maxConfigBody = 1 << 20

func (d Running) serveConfigFile(w http.ResponseWriter, r *http.Request) {
	opened, err := d.Drafts.Open(r.URL.Query().Get("path"))
	writeResult(w, opened, err)
}

// serveConfigCheck returns what a change would do.
func (d Running) serveConfigCheck(w http.ResponseWriter, r *http.Request) {
	change, err := readConfigChange(w, r)
	if err != nil {
		writeOutcome(w, err)
		return
	}
	outcome, err := d.Drafts.Check(change)
	writeResult(w, outcome, err)
}

// serveConfigSave writes a change, and returns when dowel has read the file.
func (d Running) serveConfigSave(w http.ResponseWriter, r *http.Request) {
	change, err := readConfigChange(w, r)
	if err != nil {
		writeOutcome(w, err)
		return
	}
	outcome, err := d.Drafts.Save(change)
	if err == nil && outcome.Written {
		if failed := d.record("config/save", "", outcome.Path, d.Controller.Reload(r.Context())); failed != nil {
			outcome.Warning = "the file is saved, but the configuration has a problem: " + failed.Error()
		}
	}
	writeResult(w, outcome, err)
}

func readConfigChange(w http.ResponseWriter, r *http.Request) (c draft.Change, err error) {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxConfigBody))
	dec.UseNumber() // numbers keep their digits in the file
	err = dec.Decode(&c)
	return c, err
}
