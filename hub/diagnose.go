package hub

import (
	"errors"
	"net/http"

	"github.com/dowel-mcp/dowel/internal/doctor"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// diagnose says why the present attempt has failed, or its connection was lost.
func (u *Upstream) diagnose(err error) *doctor.Diagnosis {
	d := doctor.Explain(err, u.Patient())
	return &d
}

// Patient returns what [doctor.Examine] looks at, with what the present attempt has left.
func (u *Upstream) Patient() doctor.Server {
	d := u.Definition()
	stderr, strays := u.log.attempt()
	return doctor.Server{Name: d.Name, Target: d.Target, Options: d.Options, Mask: d.Mask, Stderr: stderr, StrayStdout: strays}
}

// needsAuthorization reports whether a server wants to know who asks.
func needsAuthorization(err error) bool {
	var refused *streamable.HTTPError
	return errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden)
}
