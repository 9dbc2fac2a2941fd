package control

import (
	"encoding/json"
	"net/http"

	"github.com/dowel-mcp/dowel/internal/config/draft"
	"github.com/dowel-mcp/dowel/internal/config/leftovers"
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
	for _, s := range outcome.RemovedEntries {
		for _, folder := range leftovers.Of(s) {
			outcome.Leftovers = append(outcome.Leftovers, folder.Announce())
		}
	}
	writeResult(w, outcome, err)
}

// serveConfigSave writes a change, and returns when dowel has read the file. The folders of removed
// servers go with their entries.
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
		for _, s := range outcome.RemovedEntries {
			for _, done := range leftovers.Remove(s, d.Places) {
				outcome.Leftovers = append(outcome.Leftovers, done.String())
			}
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
