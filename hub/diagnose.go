package hub

import (
	"errors"
	"net/http"

	"github.com/dowel-mcp/dowel/transport"
)

// Diagnosis says what has gone wrong with an upstream, and what to do.
type Diagnosis struct {
	Summary, Advice string
}

func (u *Upstream) diagnose(err error) Diagnosis { return Diagnosis{Summary: u.def.mask(err.Error())} }

// needsAuthorization reports whether a server wants to know who asks.
func needsAuthorization(err error) bool {
	var refused *transport.HTTPError
	return errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden)
}
