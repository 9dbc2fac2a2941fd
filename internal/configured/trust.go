package configured

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/config"
)

// Untrusted is a server that waits for the user's trust.
type Untrusted struct {
	*config.Server
	// Facts say what the server can do.
	Facts config.TrustFacts
	// Changes are the differences to the facts that the user agreed to earlier, one a line. They
	// are nil if the user has never agreed.
	Changes []string
}

// Reason says why the server waits, and how to allow it.
func (u Untrusted) Reason() string {
	if u.Changes == nil {
		return "it came with the project and would run as you: look at it and allow it with dowel trust " + u.Name
	}
	return "it has changed since you allowed it (" + strings.Join(u.Changes, ", ") + "): allow it again with dowel trust " + u.Name
}

// DefinitionLog returns the log of the definitions of a server in a file, or nil.
func DefinitionLog(c Choices, server *config.Server) client.DefinitionLog {
	if server.Scope == config.Project {
		return c.DefinitionLog(server.Path, server.Name)
	}
	return c.DefinitionLog("", server.Name)
}

// checkTrust reports whether a server needs the user's trust, which is the case for a project's
// server without an agreement that covers its facts. The agreement of an older dowel is completed
// by the facts that it lacks. s.mu is held.
func (s *Source) checkTrust(server *config.Server) (u Untrusted, needed bool) {
	if server.Scope != config.Project {
		return Untrusted{}, false
	}
	u = Untrusted{Server: server, Facts: server.TrustFacts(s.variables())}
	for _, path := range u.Facts.Files() {
		s.reads[path] = true
	}
	agreement, agreed := s.opts.Choices.Trusted(server.Path, server.Name)
	switch {
	case !agreed:
		return u, true
	case agreement.Digests == nil:
		if u.Changes = server.LegacyChanges(agreement); u.Changes == nil {
			s.completeAgreement(u)
		}
		return u, u.Changes != nil
	}
	key, err := s.opts.Choices.TrustKey()
	if err != nil {
		u.Changes = []string{"the key of your trust cannot be read: " + err.Error()}
		return u, true
	}
	u.Changes = u.Facts.Changes(agreement, key)
	return u, u.Changes != nil
}

// completeAgreement replaces the agreement of an older dowel, which covered neither values of
// variables nor files, by one that covers all facts as they are now.
func (s *Source) completeAgreement(u Untrusted) {
	if err := s.storeTrust(u, false); err != nil {
		s.opts.Logger.Warn("your trust is not completed: "+err.Error(), "server", u.Name)
		return
	}
	s.opts.Logger.Warn("trust now covers values of variables, env files and scripts: recorded as they are; look at them with dowel trust --list "+u.Name, "server", u.Name)
}

func (s *Source) storeTrust(u Untrusted, folder bool) error {
	key, err := s.opts.Choices.TrustKey()
	if err != nil {
		return err
	}
	return s.opts.Choices.Trust(u.Path, u.Name, u.Facts.Agree(key, folder))
}

// Untrusted returns the servers that wait for the user's trust.
func (s *Source) Untrusted() (all []Untrusted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.servers {
		if u, needed := s.checkTrust(server); needed && server.Valid() {
			all = append(all, u)
		}
	}
	return all
}

// Project returns the valid servers of the project's files, trusted or not.
func (s *Source) Project() (all []Untrusted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.servers {
		if server.Scope == config.Project && server.Valid() {
			u, _ := s.checkTrust(server)
			all = append(all, u)
		}
	}
	return all
}

// Trust stores that the user agrees to a project's server as seen, and applies it. If the server
// has changed meanwhile, Trust returns an error and stores nothing. With folder, the agreement does
// not cover the content of the project's files.
func (s *Source) Trust(seen Untrusted, folder bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readFiles()
	i := slices.IndexFunc(s.servers, func(server *config.Server) bool { return server.Name == seen.Name && server.Path == seen.Path })
	if i < 0 {
		return fmt.Errorf("%w: %s", ErrUnknown, seen.Name)
	}
	now, _ := s.checkTrust(s.servers[i])
	if changes := now.Facts.ChangesSince(seen.Facts); changes != nil {
		return fmt.Errorf("%s has changed meanwhile (%s): look at it again", seen.Name, strings.Join(changes, ", "))
	}
	if err := s.storeTrust(now, folder); err != nil {
		return err
	}
	s.applyDefinitions("trusted")
	return nil
}
