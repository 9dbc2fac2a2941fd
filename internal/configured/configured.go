// Package configured keeps a hub in step with configuration files and with what the user has chosen: which servers are on,
// and which of those that came with a project are trusted.
//
//	s := configured.New(h, configured.Options{Config: config.Options{Project: folder}, Choices: store})
//	s.Load("dowel begins")
//	for range s.Changes(ctx, watch.Options{}) { // the files are loaded again as they change
//	}
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

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/config"
)

// Choices is what the user has chosen, and no project's file should say. It is safe for concurrent use.
type Choices interface {
	// Enabled reports whether a server is switched on, and whether anything was said of it.
	Enabled(server string) (on, said bool)
	SetEnabled(server string, on bool) error
	// Trusted returns what the user has agreed to of a server of a project's file: a hash, and the facts in lines.
	Trusted(file, server string) (hash string, facts []string, ok bool)
	Trust(file, server, hash string, facts []string) error
}

// Options configure a [Source]. Choices is required.
type Options struct {
	// Config says where the files are.
	Config  config.Options
	Choices Choices
	// Fallback are the servers of a hub for which no file has a place for servers.
	Fallback []hub.Definition
	// Variables replaces what strings are expanded with; nil: as Config has it.
	Variables *config.Variables
	// MissingGrace is how long a file may be missing, or empty, before that counts: some programs
	// remove a file before they write it again. 0 means 2 seconds.
	MissingGrace time.Duration
	// Logger takes problems of files. nil: slog.Default.
	Logger *slog.Logger
}

// Source loads the definitions of a hub. It is safe for concurrent use.
type Source struct {
	hub  *hub.Hub
	opts Options

	mu    sync.Mutex
	set   *config.Set
	good  map[string][]*config.Server // of each file, from when it could be read last
	list  []*config.Server            // that count, in order
	valid map[place]*config.Server    // each from when its entry was right last
	stale map[*config.Server]string   // what is wrong by now with entries that were right
	gone  map[string]time.Time        // since when files are missing that were there, or have nothing in them
	blank []string                    // of reads, those of the definition that is being made
	made  map[place]hub.Definition    // from files that were all there
	reads map[string]bool             // files that the definitions were made from besides: of ${file:…} and envFile
	watch *watching                   // nil while nobody wants to hear of changes
}

// New returns the source of a hub's definitions.
func New(h *hub.Hub, o Options) *Source {
	o.MissingGrace = cmp.Or(o.MissingGrace, 2*time.Second)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Source{hub: h, opts: o, good: map[string][]*config.Server{}, gone: map[string]time.Time{}, made: map[place]hub.Definition{}}
}

// Load reads the files and applies what they say. A file that cannot be read, although it could once, leaves what it said.
// cause says in a few words why, such as "dowel.json changed". It returns what was read, with its problems.
func (s *Source) Load(cause string) *config.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read()
	s.apply(cause)
	return s.set
}

// Look reads the files as Load does, applies nothing, and returns the definitions.
func (s *Source) Look() []hub.Definition {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read()
	return s.definitions()
}

func (s *Source) read() {
	s.set = config.Load(s.opts.Config)
	s.list = s.keepValid(s.count())
}

// place is where an entry stands.
type place struct{ path, name string }

// keepValid returns the servers with those whose entries have become wrong as they were: what runs goes on.
func (s *Source) keepValid(list []*config.Server) []*config.Server {
	valid, stale := map[place]*config.Server{}, map[*config.Server]string{}
	for i, server := range list {
		at := place{server.Path, server.Name}
		if was := s.valid[at]; !server.Valid() && was != nil && !server.Disabled {
			list[i] = was
			stale[was] = "its entry has become wrong, and it runs as before: " + worst(server.Problems)
			if s.stale[was] != stale[was] {
				s.opts.Logger.Warn(stale[was], "server", server.Name)
			}
		}
		if list[i].Valid() {
			valid[at] = list[i]
		}
	}
	s.valid, s.stale = valid, stale
	return list
}

// count returns the servers that count: each name once, by the precedence of the files.
func (s *Source) count() (list []*config.Server) {
	byFile := map[string][]*config.Server{}
	for _, server := range s.set.Servers {
		byFile[server.Path] = append(byFile[server.Path], server)
	}
	for _, shadow := range s.set.Shadowed {
		byFile[shadow.Path] = append(byFile[shadow.Path], shadow.Server)
	}
	taken := map[string]bool{}
	for _, f := range s.set.Files {
		if !f.Broken && !s.between(f) {
			s.good[f.Path] = byFile[f.Path]
		}
		for _, server := range s.good[f.Path] {
			if !taken[server.Name] {
				taken[server.Name] = true
				list = append(list, server)
			}
		}
	}
	return list
}

// apply makes the definitions of what was read those of the hub; s.mu is held.
func (s *Source) apply(cause string) {
	s.hub.Apply(s.definitions(), cause)
	if s.watch.aim(s.paths()) { // what has changed before it was watched is read again
		s.hub.Apply(s.definitions(), cause)
	}
}

// definitions returns those of what was read; s.mu is held.
func (s *Source) definitions() (all []hub.Definition) {
	s.reads = map[string]bool{}
	for _, server := range s.list {
		all = append(all, s.defineServer(server))
	}
	if len(all) == 0 && s.unconfigured() {
		for _, d := range s.opts.Fallback {
			if on, said := s.opts.Choices.Enabled(d.Name); said && !on {
				d.Hold = hub.Hold{Status: hub.Disabled, Reason: switchedOff}
			}
			all = append(all, d)
		}
	}
	return all
}

// unconfigured reports whether no file says which servers there are, as far as one can tell; s.mu is held.
func (s *Source) unconfigured() bool {
	return !slices.ContainsFunc(s.set.Files, func(f config.File) bool { return f.Lists || f.Broken })
}

const switchedOff = "it is switched off"

// define returns the definition of a server, which is held where there is a reason.
func (s *Source) defineServer(server *config.Server) hub.Definition {
	if on, said := s.opts.Choices.Enabled(server.Name); said && !on {
		return hold(server, hub.Disabled, switchedOff)
	} else if !said && server.Disabled {
		return hold(server, hub.Disabled, "its entry says so: "+server.Where("disabled").String())
	}
	if !server.Valid() {
		return hold(server, hub.NeedsConfiguration, worst(server.Problems))
	}
	if why := s.distrust(server); why != "" {
		return hold(server, hub.NeedsTrust, why)
	}
	s.blank = nil
	d, problems := server.Resolve(s.variables())
	at := place{server.Path, server.Name}
	if was, known := s.made[at]; known && s.writing() {
		return was
	}
	if d == nil {
		return hold(server, hub.NeedsConfiguration, worst(problems))
	}
	def := define(d)
	def.Note = s.stale[server]
	s.made[at] = def
	return def
}

func (s *Source) variables() config.Variables {
	v := s.opts.Config.Variables()
	if s.opts.Variables != nil {
		v = *s.opts.Variables
	}
	return v.OnRead(func(path string, text []byte, err error) {
		s.reads[path] = true
		if err != nil || len(bytes.TrimSpace(text)) == 0 {
			s.blank = append(s.blank, path)
		} else {
			delete(s.gone, path)
		}
	})
}

// worst returns what is wrong in a line: the first error, and what else may be its cause.
func worst(problems []config.Problem) string {
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

// distrust says why a server of a project is not started; empty where the user has agreed to it as it is.
func (s *Source) distrust(server *config.Server) string {
	if server.Scope != config.Project {
		return ""
	}
	hash, facts, ok := s.opts.Choices.Trusted(server.Path, server.Name)
	switch {
	case !ok:
		return "it came with the project and would run as you: look at it and allow it with dowel trust " + server.Name
	case hash != server.TrustHash():
		return "it has changed since you allowed it (" + strings.Join(config.TrustChange(facts, server.TrustFacts()), ", ") +
			"): allow it again with dowel trust " + server.Name
	}
	return ""
}

// Set returns what was read last; nil before the first Load.
func (s *Source) Set() *config.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set
}

// Untrusted is a server that waits for the user's trust.
type Untrusted struct {
	*config.Server
	// Facts say what it can do, in lines; Before, what the user has agreed to earlier, nil where that was never.
	Facts, Before []string
}

// Untrusted returns the servers that wait for the user's trust.
func (s *Source) Untrusted() (all []Untrusted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.list {
		if server.Valid() && s.distrust(server) != "" {
			_, before, _ := s.opts.Choices.Trusted(server.Path, server.Name)
			all = append(all, Untrusted{server, server.TrustFacts(), before})
		}
	}
	return all
}

// ErrUnknown is wrapped by the error for a name that no file has.
var ErrUnknown = errors.New("there is no such server")

// Enable switches a server on or off, and applies that.
func (s *Source) Enable(name string, on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known(name) {
		return fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	if err := s.opts.Choices.SetEnabled(name, on); err != nil {
		return err
	}
	s.apply("switched " + map[bool]string{true: "on", false: "off"}[on])
	return nil
}

func (s *Source) known(name string) bool {
	return slices.ContainsFunc(s.list, func(server *config.Server) bool { return server.Name == name }) ||
		len(s.list) == 0 && slices.ContainsFunc(s.opts.Fallback, func(d hub.Definition) bool { return d.Name == name })
}

// Trust agrees to a server of a project as it is now, and applies that. facts are those that the user has seen: where the
// server has others now, the error says so and nothing is agreed to.
func (s *Source) Trust(name string, facts []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.list, func(server *config.Server) bool { return server.Name == name })
	if i < 0 {
		return fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	server := s.list[i]
	if now := server.TrustFacts(); facts != nil && !slices.Equal(facts, now) {
		return fmt.Errorf("%s has changed meanwhile (%s): look at it again", name, strings.Join(config.TrustChange(facts, now), ", "))
	}
	if server.Scope != config.Project {
		return nil // the user's own need none
	}
	if err := s.opts.Choices.Trust(server.Path, name, server.TrustHash(), server.TrustFacts()); err != nil {
		return err
	}
	s.apply("trusted")
	return nil
}
