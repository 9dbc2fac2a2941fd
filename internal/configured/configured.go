// Package configured keeps a hub in step with configuration files and the user's decisions: which
// servers are switched on, and which servers of a project are trusted.
//
//	h := hub.New(&hub.Options{Watch: configured.WatchFiles})
//	s := configured.New(h, configured.Options{Config: config.Options{Project: folder}, Choices: store})
//	s.Load("dowel starts")
//	for range s.Changes(ctx, watch.Options{}) { // loads the files again when they change
//	}
//
// A [Source] turns each entry into a [hub.Definition]. It is careful with mistakes: while a file is
// unreadable, or an entry is invalid, the servers run as they did before.
package configured

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/secretmask"
)

// Choices are the user's decisions that no project's file may take. Its methods are called
// concurrently.
type Choices interface {
	// Enabled reports whether the user has switched a server on. said is false if the user has not
	// decided.
	Enabled(server string) (on, decided bool)
	// SetEnabled stores the user's decision.
	SetEnabled(server string, on bool) error
	// Trusted returns the user's agreement to a server in a project's file. ok is false if the user
	// has not agreed.
	Trusted(file, server string) (a config.Agreement, ok bool)
	// Trust stores the user's agreement.
	Trust(file, server string, a config.Agreement) error
	// TrustKey returns the key of the digests in agreements.
	TrustKey() ([]byte, error)
	// DefinitionLog returns the log of a server's definitions, or nil. file is the project's file
	// that defines the server, or empty for servers of the user.
	DefinitionLog(file, server string) client.DefinitionLog
}

// Options configure a [Source]. Choices is required.
type Options struct {
	// Config says where the files are.
	Config  config.Options
	Choices Choices
	// Logins keeps the logins at servers. nil logs in nowhere.
	Logins auth.Store
	// ShareInCluster returns the target of a server that one replica connects to for all. With an
	// entry, which is a fingerprint, that is so only if the server opens a session, and only for
	// the replicas with the same entry. nil means that this process is no replica of a cluster.
	ShareInCluster func(server string, target any, entry string) any
	// Fallback are the servers of the hub if no file lists any.
	Fallback []hub.Definition
	// Variables expand the strings of the files. nil uses the variables of Config.
	Variables *config.Variables
	// MissingGrace is how long a file may be missing, or empty, before that counts: some programs
	// remove a file before they write it again. 0 means [DefaultMissingGrace].
	MissingGrace time.Duration
	// Secrets gets the secrets of all servers, so that they can be masked. nil collects none.
	Secrets *secretmask.Set
	// Logger receives problems of files. nil means [slog.Default].
	Logger *slog.Logger
}

// DefaultMissingGrace is the default of [Options].MissingGrace. It is a variable for tests.
var DefaultMissingGrace = 2 * time.Second

// Source loads the definitions of a hub from files. It is safe for concurrent use.
type Source struct {
	hub  *hub.Hub
	opts Options

	mu           sync.Mutex
	set          *config.Set
	lastGood     map[string][]*config.Server // servers of each file when it was last readable
	servers      []*config.Server            // the effective ones, in order
	lastValid    map[entryKey]*config.Server // each entry when it was last valid
	staleReasons map[*config.Server]string   // why entries that were valid are not valid any more
	stayedBlank  map[string]bool             // files that were missing or empty for the whole grace
	blankReads   []string                    // missing or empty files that the current definition reads
	definitions  map[entryKey]hub.Definition // of each entry, the last one that read no missing file
	users        map[entryKey]*userLogins    // of the servers with a login for each user
	reads        map[string]bool             // files that definitions read: envFile and ${file:…}
	watch        *fileWatch                  // nil outside Changes
}

// New returns the source of a hub's definitions. It reads nothing before [Source.Load]. Without a
// hub, the source starts no servers: it reads the files and stores the user's decisions.
func New(h *hub.Hub, o Options) *Source {
	o.MissingGrace = cmp.Or(o.MissingGrace, DefaultMissingGrace)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Source{hub: h, opts: o, lastGood: map[string][]*config.Server{}, stayedBlank: map[string]bool{}, definitions: map[entryKey]hub.Definition{}, users: map[entryKey]*userLogins{}}
}

// Load reads the files and applies their servers to the hub. A file that has become unreadable
// keeps its former servers. cause says why in a few words, such as "dowel.json was modified". Load
// returns the files' content with its problems.
func (s *Source) Load(cause string) *config.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readFiles()
	s.applyDefinitions(cause)
	return s.set
}

// Look reads the files like Load, and returns the definitions without applying them.
func (s *Source) Look() []hub.Definition {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readFiles()
	return s.buildDefinitions()
}

// readFiles reads the files. s.mu is held.
func (s *Source) readFiles() {
	s.set = config.Load(s.opts.Config)
	s.servers = s.keepValid(s.effectiveServers())
}

// entryKey identifies an entry by its file and name.
type entryKey struct{ path, name string }

// keepValid replaces entries that have become invalid by their last valid form, so that a typing
// mistake does not stop a server.
func (s *Source) keepValid(list []*config.Server) []*config.Server {
	valid, stale := map[entryKey]*config.Server{}, map[*config.Server]string{}
	for i, server := range list {
		at := entryKey{server.Path, server.Name}
		if was := s.lastValid[at]; !server.Valid() && was != nil && !server.Disabled {
			list[i] = was
			stale[was] = "its entry is not valid any more, so the last valid one still runs: " + describeProblems(server.Problems)
			if s.staleReasons[was] != stale[was] {
				s.opts.Logger.Warn(stale[was], "server", server.Name)
			}
		}
		if list[i].Valid() {
			valid[at] = list[i]
		}
	}
	s.lastValid, s.staleReasons = valid, stale
	return list
}

// effectiveServers returns each server name once, by the precedence of the files.
func (s *Source) effectiveServers() (list []*config.Server) {
	byFile := map[string][]*config.Server{}
	for _, server := range s.set.Servers {
		byFile[server.Path] = append(byFile[server.Path], server)
	}
	for _, shadow := range s.set.Shadowed {
		byFile[shadow.Path] = append(byFile[shadow.Path], shadow.Server)
	}
	taken := map[string]bool{}
	for _, f := range s.set.Files {
		if !f.Broken && !s.isBeingWritten(f) {
			s.lastGood[f.Path] = byFile[f.Path]
		}
		for _, server := range s.lastGood[f.Path] {
			if !taken[server.Name] {
				taken[server.Name] = true
				list = append(list, server)
			}
		}
	}
	return list
}

// applyDefinitions applies the definitions to the hub if there is one. s.mu is held.
func (s *Source) applyDefinitions(cause string) {
	if s.hub == nil {
		return
	}
	s.hub.Apply(s.buildDefinitions(), cause)
	if s.watch.watchPaths(s.watchedPaths()) { // read newly watched files again: they may have changed before
		s.hub.Apply(s.buildDefinitions(), cause)
	}
}

// buildDefinitions returns the definitions of the effective servers, or the fallback. s.mu is held.
func (s *Source) buildDefinitions() (all []hub.Definition) {
	s.reads = map[string]bool{}
	for _, server := range s.servers {
		all = append(all, s.defineServer(server))
	}
	if len(all) == 0 && s.hasNoServerList() {
		for _, d := range s.opts.Fallback {
			if on, decided := s.opts.Choices.Enabled(d.Name); decided && !on {
				d.Hold = hub.Hold{Status: hub.Disabled, Reason: switchedOff}
			}
			all = append(all, d)
		}
	}
	return all
}

// hasNoServerList reports whether no file lists servers. An unreadable file may list some. s.mu is
// held.
func (s *Source) hasNoServerList() bool {
	return !slices.ContainsFunc(s.set.Files, func(f config.File) bool { return f.Lists || f.Broken })
}

// switchedOff is the reason of a server that the user has disabled.
const switchedOff = "it is switched off"

// defineServer returns the definition of a server, which is held if there is a reason. s.mu is
// held.
func (s *Source) defineServer(server *config.Server) hub.Definition {
	if on, decided := s.opts.Choices.Enabled(server.Name); decided && !on {
		return heldDefinition(server, hub.Disabled, switchedOff)
	} else if !decided && server.Disabled {
		return heldDefinition(server, hub.Disabled, "its entry says so: "+server.Where("disabled").String())
	}
	if !server.Valid() {
		return heldDefinition(server, hub.NeedsConfiguration, describeProblems(server.Problems))
	}
	if u, needed := s.checkTrust(server); needed {
		return heldDefinition(server, hub.NeedsTrust, u.Reason())
	}
	s.blankReads = nil
	d, problems := server.Resolve(s.recordingVariables())
	at := entryKey{server.Path, server.Name}
	if was, known := s.definitions[at]; known && s.readsFileBeingWritten() {
		return was
	}
	if d == nil {
		return heldDefinition(server, hub.NeedsConfiguration, describeProblems(problems))
	}
	if s.opts.Secrets != nil {
		s.opts.Secrets.Add(d.Secrets...)
	}
	def := newDefinition(d, s.opts.Logins)
	if def.Hold == (hub.Hold{}) && d.OAuth != nil && d.OAuth.PerUser {
		users, err := s.usersOf(at, d)
		if err != nil {
			return heldDefinition(server, hub.NeedsConfiguration, d.Mask(err.Error()))
		}
		def.LoginFor = users.loginFor
	}
	def.Note = s.staleReasons[server]
	def = s.shareInCluster(def, d)
	def.Log = DefinitionLog(s.opts.Choices, server)
	if s.set.HoldsChanges(server) {
		def.HoldChanged = "look at it and accept it with dowel trust --definitions " + server.Name
	}
	s.definitions[at] = def
	return def
}

// variables returns the variables of the strings.
func (s *Source) variables() config.Variables {
	if s.opts.Variables != nil {
		return *s.opts.Variables
	}
	return s.opts.Config.Variables()
}

// recordingVariables returns the variables, which record the files that they read. s.mu is held.
func (s *Source) recordingVariables() config.Variables {
	return s.variables().OnRead(func(path string, text []byte, err error) {
		s.reads[path] = true
		if err != nil || len(bytes.TrimSpace(text)) == 0 {
			s.blankReads = append(s.blankReads, path)
		} else {
			delete(s.stayedBlank, path)
		}
	})
}

// describeProblems returns the worst problem in a line, and a second one, which may be its cause.
func describeProblems(problems []config.Problem) string {
	ordered := slices.Clone(problems)
	slices.SortStableFunc(ordered, func(a, b config.Problem) int { return int(b.Severity) - int(a.Severity) })
	var parts []string
	for _, p := range ordered[:min(len(ordered), 2)] {
		text := p.Message
		if p.Hint != "" {
			text += ": " + p.Hint
		}
		parts = append(parts, text)
	}
	return ordered[0].Position.String() + ": " + strings.Join(parts, "; ")
}

// Set returns the result of the last load, or nil before the first one.
func (s *Source) Set() *config.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set
}

// ErrUnknown is wrapped by errors for a name that no file has.
var ErrUnknown = errors.New("there is no such server")

// Enable switches a server on or off, stores that, and applies it.
func (s *Source) Enable(name string, on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasServer(name) {
		return fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	if err := s.opts.Choices.SetEnabled(name, on); err != nil {
		return err
	}
	s.applyDefinitions("switched " + map[bool]string{true: "on", false: "off"}[on])
	return nil
}

// hasServer reports whether a file or the fallback has a server of that name. s.mu is held.
func (s *Source) hasServer(name string) bool {
	return slices.ContainsFunc(s.servers, func(server *config.Server) bool { return server.Name == name }) ||
		len(s.servers) == 0 && slices.ContainsFunc(s.opts.Fallback, func(d hub.Definition) bool { return d.Name == name })
}
