// Package control is how other programs of the same user talk to a running dowel: HTTP with JSON over a Unix socket, a named
// pipe on Windows, that nobody else can open. [Serve] is the running dowel's side, [Client] the other.
package control

import (
	"time"

	"github.com/dowel-mcp/dowel/hub"
)

// Status is how a running dowel is.
type Status struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Ending: it takes nothing any more, and finishes what it does.
	Ending bool `json:"ending,omitzero"`
	// Gateway and Page are URLs; empty where there is no HTTP.
	Gateway string   `json:"gateway,omitzero"`
	Page    string   `json:"page,omitzero"`
	Files   []string `json:"files"`
	// Folder is where it was started: servers that name no folder of their own work there.
	Folder string `json:"folder,omitzero"`
	// Problems are what is wrong with the files themselves; what is wrong with a server is in Servers.
	Problems []string `json:"problems,omitempty"`
	Servers  []Server `json:"servers"`
}

// Server is how one upstream is.
type Server struct {
	Name   string     `json:"name"`
	Status hub.Status `json:"status"`
	Since  time.Time  `json:"since"`
	Cause  string     `json:"cause,omitzero"`
	Origin string     `json:"origin,omitzero"`
	// Source is where its definition is from: user, project or built in.
	Source string `json:"source,omitzero"`
	// Note is what is to be known of its definition while it runs.
	Note string `json:"note,omitzero"`
	// Revision and Era are spoken with it, as far as known.
	Revision string `json:"revision,omitzero"`
	Era      string `json:"era,omitzero"`
	// Title is what the server calls itself, with its version.
	Title     string `json:"title,omitzero"`
	Tools     int    `json:"tools"`
	Prompts   int    `json:"prompts"`
	Resources int    `json:"resources"`
	// Problem and Advice say what has gone wrong and what to do.
	Problem string    `json:"problem,omitzero"`
	Advice  string    `json:"advice,omitzero"`
	Attempt int       `json:"attempt,omitzero"`
	Next    time.Time `json:"next,omitzero"`
	// Quarantined are things that are left out, and why.
	Quarantined []Quarantined `json:"quarantined,omitempty"`
}

// Quarantined is a thing that is not offered, since it is broken.
type Quarantined struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Event is something that has happened to an upstream.
type Event struct {
	Time   time.Time `json:"time"`
	Server string    `json:"server"`
	// Kind is state, catalog or stderr.
	Kind   string     `json:"kind"`
	Status hub.Status `json:"status,omitzero"`
	Cause  string     `json:"cause,omitzero"`
	Line   string     `json:"line,omitzero"`
	Missed int        `json:"missed,omitzero"`
}

// Describe returns how an upstream is.
func Describe(u *hub.Upstream, c *hub.Catalog) Server {
	s, info, def := u.State(), u.Info(), u.Definition()
	d := Server{
		Name: u.Name(), Status: s.Status, Since: s.Since, Cause: s.Cause, Attempt: s.Attempt, Next: s.Next,
		Origin: def.Origin, Source: def.Source, Note: def.Note,
		Revision: string(info.Revision), Title: info.Server.Name,
	}
	if info.Server.Version != "" {
		d.Title += " " + info.Server.Version
	}
	switch {
	case info.Revision == "":
	case info.Revision.Modern():
		d.Era = "modern"
	default:
		d.Era = "legacy"
	}
	if s.Diagnosis != nil {
		d.Problem, d.Advice = s.Diagnosis.Summary, s.Diagnosis.Advice
	}
	d.Tools, d.Prompts = c.Count(u, hub.Tool), c.Count(u, hub.Prompt)
	d.Resources = c.Count(u, hub.Resource) + c.Count(u, hub.Template)
	for _, q := range u.Quarantined() {
		d.Quarantined = append(d.Quarantined, Quarantined{q.Kind.String(), q.Name, q.Reason})
	}
	return d
}

// DescribeAll returns how all upstreams of a hub are.
func DescribeAll(h *hub.Hub) []Server {
	all := []Server{}
	c := h.Catalog()
	for _, u := range h.Upstreams() {
		all = append(all, Describe(u, c))
	}
	return all
}

// EventOf returns an event of a hub in its form on the wire.
func EventOf(e hub.Event) Event {
	out := Event{Time: e.Time, Server: e.Upstream, Missed: e.Missed}
	switch e.Kind {
	case hub.StateChanged:
		out.Kind, out.Status, out.Cause = "state", e.State.Status, e.State.Cause
	case hub.CatalogChanged:
		out.Kind = "catalog"
	case hub.StderrWritten:
		out.Kind, out.Line = "stderr", e.Line
	}
	return out
}
