package configured

import (
	"net/url"
	"slices"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/httpwire"
)

// noCluster is the note of a server that has "sharing": "cluster" without an effect.
const noCluster = `its "sharing": "cluster" means the same as "shared", because this dowel is no replica of a cluster (dowel up --cluster)`

// shareInCluster makes a server one that one replica connects to for all, if its entry asks for it.
// A server over HTTP whose entry says nothing is one if it opens a session, for the replicas with
// the same entry. A server at a loopback address is not: that is another process at each machine.
func (s *Source) shareInCluster(d hub.Definition, entry *config.Definition) hub.Definition {
	isAsked := d.Sharing == config.ShareInCluster
	mayHaveSession := d.Sharing == "" && slices.Contains([]config.Kind{config.HTTP, config.SSE, config.Auto}, entry.Kind) && d.LoginFor == nil && !isLoopbackURL(entry.URL)
	switch {
	case d.Hold != (hub.Hold{}):
	case !isAsked && !mayHaveSession:
	case s.opts.ShareInCluster != nil:
		same := ""
		if mayHaveSession {
			same = d.Fingerprint
		}
		d.Target = s.opts.ShareInCluster(d.Name, d.Target, same)
		d.Fingerprint = sharedFingerprint(d.Fingerprint)
	case isAsked && d.Note != "":
		d.Note += "; " + noCluster
	case isAsked:
		d.Note = noCluster
	}
	return d
}

// sharedFingerprint returns the fingerprint of the definition that one replica connects to for all.
// It differs from the entry's own, because "shared" is something else in a cluster.
func sharedFingerprint(entry string) string { return entry + "," + string(config.ShareInCluster) }

// isDefinitionOf reports whether a definition, with that fingerprint, has been made of an entry.
func isDefinitionOf(fingerprint string, entry *config.Definition) bool {
	own := entry.Fingerprint()
	return fingerprint == own || fingerprint == sharedFingerprint(own)
}

// isLoopbackURL reports whether a URL names this machine.
func isLoopbackURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && httpwire.IsLoopbackHost(u.Hostname())
}
