package server

import (
	"encoding/binary"
	"slices"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// position is the end of a page: an item of the catalog, or a resource of a provider.
type position struct {
	provider uint64 // 0 means the catalog, n the n-th provider
	seq      uint64 // in the catalog of this Server
	name     string // the item's name, for replicas, which count differently
}

// sealCursor returns the cursor for a position. If [Options.Visible] filters lists, only the same
// principal can use the cursor; otherwise all can, since caches may share the page with the cursor.
func (s *Server) sealCursor(req *mcp.Request, p position) string {
	plain := binary.AppendUvarint(slices.Clone(s.instance[:]), p.provider)
	plain = binary.AppendUvarint(plain, p.seq)
	return s.cursors.Seal(append(plain, p.name...), s.cursorBound(req))
}

func (s *Server) cursorBound(req *mcp.Request) []byte {
	bound := append([]byte(req.Method), 0)
	if s.opts.Visible != nil {
		bound = append(bound, req.Principal.ID...)
	}
	return bound
}

// openCursor returns the position in the request's cursor. On the Server that made the cursor it
// stays valid when the item is removed. A replica looks the position up by the item's name.
func (s *Server) openCursor(req *mcp.Request, v listView) (p position, err error) {
	raw := rawjson.Lookup(req.Params, "cursor")
	if raw == nil || rawjson.IsNull(raw) {
		return p, nil
	}
	sealed, ok := rawjson.String(raw)
	if !ok {
		return p, mcp.InvalidParams("cursor must be a string")
	}
	invalid := mcp.InvalidParams("invalid cursor: begin the list anew")
	plain, err := s.cursors.Open(sealed, s.cursorBound(req))
	if err != nil || len(plain) < len(s.instance) {
		return p, invalid
	}
	ours := string(plain[:len(s.instance)]) == string(s.instance[:])
	plain = plain[len(s.instance):]
	for _, n := range []*uint64{&p.provider, &p.seq} {
		v, size := binary.Uvarint(plain)
		if size <= 0 {
			return p, invalid
		}
		*n, plain = v, plain[size:]
	}
	p.name = string(plain)
	if p.provider > uint64(len(v.providers)) {
		return p, invalid
	}
	if p.provider == 0 && !ours {
		at := slices.IndexFunc(v.slots, func(sl listSlot) bool { return sl.item.Name == p.name })
		if at < 0 {
			return p, invalid
		}
		p.seq = v.slots[at].seq
	}
	return p, nil
}
