package streamable

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
)

// sessionToken is the content of a session id: the fixed state of the session. It is sealed for the
// principal that opened the session, so every replica with the keys can serve the session.
type sessionToken struct {
	Key          string          `json:"k"` // names the session in the stores
	Server       string          `json:"s"` // the instance of the Server that opened it
	Opened       int64           `json:"t"` // Unix seconds
	Revision     mcp.Revision    `json:"v"`
	Capabilities json.RawMessage `json:"c"`
	ClientInfo   json.RawMessage `json:"i,omitempty"`
}

// maxSessionID bounds session ids in bytes. They travel with each request, and servers bound the
// size of header fields.
const maxSessionID = 1024

func newSessionKey() string {
	key := make([]byte, 15)
	_, _ = rand.Read(key) // crypto/rand never fails
	return base64.RawURLEncoding.EncodeToString(key)
}

func (s *Server) newSessionToken(ss *session, st serving.SessionState) sessionToken {
	return sessionToken{ss.key, s.instance, ss.opened, st.Revision, st.Capabilities, st.ClientInfo}
}

// sealID returns the session id. If it is too long, parts are left out: first the client's name,
// then the settings of extensions. A replica that rebuilds the session works without them.
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
	_ = mcp.Decode(t.Capabilities, &c) // capabilities that cannot be read are not declared
	c.Extensions, c.Experimental = nil, nil
	t.Capabilities, _ = mcp.Encode(c)
	return t.encodeID(with, p)
}

func (t sessionToken) encodeID(with *mcp.Sealer, p mcp.Principal) string {
	raw, err := json.Marshal(t)
	if err != nil {
		panic(err) // cannot happen: the raw JSON comes from a parsed message
	}
	return with.Seal(raw, []byte(p.ID))
}

// openSessionToken opens a session id. ok is false if it was sealed with other keys or for another
// principal.
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
