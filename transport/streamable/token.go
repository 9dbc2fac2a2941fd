package streamable

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
)

// sessionToken is what a session id says: what the session is, sealed, so that every replica that holds the key can serve it. It is
// bound to the principal that opened the session.
type sessionToken struct {
	Key          string       `json:"k"` // under which the session is kept
	Server       string       `json:"s"` // that minted it: the instance of one process
	Opened       int64        `json:"t"` // Unix seconds
	Revision     mcp.Revision `json:"v"`
	Capabilities mcp.Object   `json:"c"`
	ClientInfo   mcp.Object   `json:"i,omitempty"`
}

// maxSessionID bounds session ids, in bytes: they travel with every request, and servers bound header fields.
const maxSessionID = 1024

func newSessionKey() string {
	key := make([]byte, 15)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(key)
}

func (s *Server) newSessionToken(ss *session, st serving.SessionState) sessionToken {
	return sessionToken{ss.key, s.instance, ss.opened.Unix(), st.Revision, st.Capabilities, st.ClientInfo}
}

// sealID returns the session id. What is too long for one is left out, dearest first: how the client names itself, the
// settings of extensions. A replica that rebuilds the session does without.
func (t sessionToken) sealID(with *mcp.Sealer, p mcp.Principal) string {
	id := t.encodeID(with, p)
	if len(id) <= maxSessionID {
		return id
	}
	t.ClientInfo = nil
	if id = t.encodeID(with, p); len(id) <= maxSessionID {
		return id
	}
	var c mcp.ClientCapabilities
	_ = mcp.Decode(t.Capabilities, &c) // what cannot be read is not declared
	c.Extensions, c.Experimental = nil, nil
	t.Capabilities, _ = mcp.Encode(c)
	return t.encodeID(with, p)
}

func (t sessionToken) encodeID(with *mcp.Sealer, p mcp.Principal) string {
	raw, err := json.Marshal(t)
	if err != nil {
		panic(err) // raw JSON that was read from a message
	}
	return with.Seal(raw, []byte(p.ID))
}

// openSessionToken reads a session id; false for one that was not made with these keys, or for somebody else.
func openSessionToken(id string, with *mcp.Sealer, p mcp.Principal) (t sessionToken, ok bool) {
	if len(id) > 2*maxSessionID {
		return t, false
	}
	raw, err := with.Open(id, []byte(p.ID))
	return t, err == nil && json.Unmarshal(raw, &t) == nil && t.Revision.Known()
}

func (t sessionToken) sessionState() serving.SessionState {
	return serving.SessionState{Revision: t.Revision, Capabilities: t.Capabilities, ClientInfo: t.ClientInfo}
}

func (t sessionToken) openedAt() time.Time { return time.Unix(t.Opened, 0) }
