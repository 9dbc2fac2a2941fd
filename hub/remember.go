package hub

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/mcp"
)

// savedLists is the form in which an offer is kept from one run to the next.
type savedLists struct {
	Raw          [kinds][]json.RawMessage `json:"told"`
	Cache        [kinds]mcp.Cache         `json:"cache"`
	Instructions string                   `json:"instructions,omitzero"`
}

// loadLists returns what the server offered in an earlier run; nil where that is not known. u.mu is held.
func (u *Upstream) loadLists() *serverLists {
	if u.hub.opts.Cache == nil || u.def.Fingerprint == "" {
		return nil
	}
	raw, ok := u.hub.opts.Cache.Load(u.name, u.def.Fingerprint)
	var m savedLists
	if !ok || json.Unmarshal(raw, &m) != nil {
		return nil // as if it had never been started
	}
	return (&serverLists{raw: m.Raw, instructions: m.Instructions, caches: m.Cache}).applyRules(u, u.def.Tools)
}

// saveLists keeps what was told by a server with that fingerprint for a later run, where it was told to the end.
func (u *Upstream) saveLists(fingerprint string, o *serverLists) {
	if u.hub.opts.Cache == nil || fingerprint == "" || o.problems != [kinds]string{} {
		return
	}
	raw, err := json.Marshal(savedLists{o.raw, o.caches, o.instructions})
	if err == nil {
		u.hub.opts.Cache.Save(u.name, fingerprint, raw)
	}
}
