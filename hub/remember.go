package hub

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/mcp"
)

// memory is the form in which an offer is kept from one run to the next.
type memory struct {
	Told         [kinds][]json.RawMessage `json:"told"`
	Cache        [kinds]mcp.Cache         `json:"cache"`
	Instructions string                   `json:"instructions,omitzero"`
}

// remembered returns what the server offered in an earlier run; nil where that is not known. u.mu is held.
func (u *Upstream) remembered() *offer {
	if u.hub.opts.Cache == nil || u.def.Fingerprint == "" {
		return nil
	}
	raw, ok := u.hub.opts.Cache.Load(u.name, u.def.Fingerprint)
	var m memory
	if !ok || json.Unmarshal(raw, &m) != nil {
		return nil // as if it had never been started
	}
	return (&offer{told: m.Told, says: m.Instructions, cache: m.Cache}).derive(u, u.def.Tools)
}

// remember keeps what was told by a server with that fingerprint for a later run, where it was told to the end.
func (u *Upstream) remember(fingerprint string, o *offer) {
	if u.hub.opts.Cache == nil || fingerprint == "" || o.problems != [kinds]string{} {
		return
	}
	raw, err := json.Marshal(memory{o.told, o.cache, o.says})
	if err == nil {
		u.hub.opts.Cache.Save(u.name, fingerprint, raw)
	}
}
