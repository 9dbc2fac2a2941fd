// Package control lets other processes of the same user talk to a running dowel: HTTP with JSON
// over a Unix socket, or a named pipe on Windows, that only the user can open.
//
// A process becomes the running dowel with [Listen], of which only one succeeds at a time, and
// serves a [Controller] with [Handler]. The others use a [Client]. The console uses the part of the
// same API that [ConsoleAPI] serves.
package control

import (
	"cmp"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/mcpremote"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/internal/sharedserver"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// Status is the state of a running dowel.
type Status struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	// Goroutines and HeapBytes, the live heap after the last garbage collection, show leaks.
	Goroutines int    `json:"goroutines"`
	HeapBytes  uint64 `json:"heapBytes"`
	// Ending: it takes no new work, and finishes its calls.
	Ending bool `json:"ending,omitzero"`
	// Gateway is a URL, or empty without HTTP.
	Gateway string `json:"gateway,omitzero"`
	// Open: every program and user of this machine may use the gateway, without a token.
	Open bool `json:"open,omitzero"`
	// TemporaryToken: the gateway's token ends with this process, because it cannot be stored.
	TemporaryToken bool     `json:"temporaryToken,omitzero"`
	Files          []string `json:"files"`
	// Limits has the use of the gateway's limits.
	Limits Limits `json:"limits"`
	// Folder is the working directory of the process. Servers without a folder of their own work
	// there.
	Folder string `json:"folder,omitzero"`
	// Problems are problems of the files. Problems of a server are in Servers.
	Problems []string `json:"problems,omitempty"`
	// Cluster is nil for a dowel without replicas.
	Cluster *Cluster `json:"cluster,omitempty"`
	// Tasks says why this machine kept no task at the last attempt. It is nil before the first
	// attempt, and after one that has succeeded.
	Tasks   *TaskFault `json:"tasks,omitempty"`
	Servers []Server   `json:"servers"`
}

// TaskFault is why a task could not be kept: it was refused, or the slow call stayed a call.
type TaskFault struct {
	Problem string    `json:"problem"`
	Time    time.Time `json:"time"`
}

// Limits are the limits of the gateway, and what all clients hold of them.
type Limits struct {
	Bytes    Limit `json:"bytes"`
	Streams  Limit `json:"streams"`
	Sessions Limit `json:"sessions"`
}

// Limit is one limit and its use.
type Limit struct {
	Used   int64 `json:"used"`
	Limit  int64 `json:"limit"`
	Client int64 `json:"client"` // the limit of each client
}

// LimitsOf returns the limits of a quota and their use.
func LimitsOf(q *quota.Quota) Limits {
	bytes, streams, sessions := q.Used()
	l := q.Limits()
	return Limits{
		Limit{bytes, l.Bytes, l.ClientBytes},
		Limit{int64(streams), int64(l.Streams), int64(l.ClientStreams)},
		Limit{int64(sessions), int64(l.Sessions), int64(l.ClientSessions)},
	}
}

// Server is the state of one upstream.
type Server struct {
	Name   string     `json:"name"`
	Status hub.Status `json:"status"`
	Since  time.Time  `json:"since"`
	Cause  string     `json:"cause,omitzero"`
	// Installing is when a package runner began to install the server, in state starting.
	Installing time.Time `json:"installing,omitzero"`
	// Login is the address at which the user must log in, in state needs login.
	Login  string `json:"login,omitzero"`
	Origin string `json:"origin,omitzero"`
	// Source says where the definition is from: user, project or built in.
	Source string `json:"source,omitzero"`
	// Note is a remark on the definition.
	Note string `json:"note,omitzero"`
	// RunsAt is the replica that runs the server, or has the session at it, if one does for all.
	RunsAt string `json:"runsAt,omitzero"`
	// Revision and Era are the protocol's, or empty if not known yet.
	Revision string `json:"revision,omitzero"`
	Era      string `json:"era,omitzero"`
	// Title is the server's own name and version.
	Title     string `json:"title,omitzero"`
	Tools     int    `json:"tools"`
	Prompts   int    `json:"prompts"`
	Resources int    `json:"resources"`
	// Problem says what went wrong, Advice what to do.
	Problem string    `json:"problem,omitzero"`
	Advice  string    `json:"advice,omitzero"`
	Attempt int       `json:"attempt,omitzero"`
	Next    time.Time `json:"next,omitzero"`
	// Quarantined are broken and withheld items with the reason.
	Quarantined []Quarantined `json:"quarantined,omitempty"`
	// Changed are definitions that differ from the accepted ones, sorted by kind and name. The
	// first 20 have their differences.
	Changed []Changed `json:"changed,omitempty"`
}

// Changed is a definition that differs from the accepted one.
type Changed struct {
	client.DefinitionChange
	// LocalName is the name after the rename rules of the server's entry. It is empty for
	// instructions.
	LocalName string `json:"localName,omitzero"`
}

// Words returns the definition in words, such as "tool env".
func (c Changed) Words() string { return strings.TrimSpace(c.Kind + " " + c.LocalName) }

// Quarantined is an item that is not offered because it is broken or has changed.
type Quarantined struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Event is an event of an upstream in its JSON form.
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

// Describe returns the state of an upstream of a hub. It reads the state before the catalog:
// the catalog of a ready upstream has its items, an older one may lack them.
func Describe(h *hub.Hub, u *hub.Upstream) Server {
	s, info, def := u.State(), u.Server(), u.Definition()
	d := Server{
		Name: u.Name(), Status: s.Status, Since: s.Since, Cause: s.Cause, Attempt: s.Attempt, Next: s.Next, Installing: s.Installing, Login: s.LoginURL,
		Origin: def.Origin, Source: def.Source, Note: def.Note,
		Revision: string(info.Revision), Title: info.Info.Name,
	}
	if shared, ok := def.Target.(*sharedserver.Target); ok && shared.HasOwner() {
		d.RunsAt = cmp.Or(shared.Owner(), "no replica at the moment")
	}
	if info.Info.Version != "" {
		d.Title += " " + info.Info.Version
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
	if s.Status == hub.NeedsLogin {
		d.Advice = cmp.Or(adviseReplacement(u.Name(), def.Target), d.Advice)
	}
	c := h.Catalog()
	d.Tools, d.Prompts = c.Count(u, catalog.Tool), c.Count(u, catalog.Prompt)
	d.Resources = c.Count(u, catalog.Resource) + c.Count(u, catalog.Template)
	for _, q := range u.Quarantined() {
		d.Quarantined = append(d.Quarantined, Quarantined{q.Kind.String(), q.Name, q.Reason})
	}
	for i, change := range u.ChangedDefinitions() {
		if i >= maxDifferences {
			change.Lines = nil
		}
		local := change.Name
		if renamed := def.Tools.Rename[change.Name]; renamed != "" && change.Kind == catalog.Tool.String() {
			local = renamed
		}
		d.Changed = append(d.Changed, Changed{change, local})
	}
	return d
}

// maxDifferences limits the changed definitions of a server that have their differences.
const maxDifferences = 20

// adviseReplacement returns advice for a server that logs in with mcp-remote, or "".
func adviseReplacement(name string, target any) string {
	command, ok := target.(stdio.Command)
	if !ok {
		return ""
	}
	if _, found, err := mcpremote.Parse(command.Path, command.Args); !found || err != nil {
		return ""
	}
	return "Log in there, or let dowel connect without mcp-remote: dowel servers set " + name
}

// DescribeAll returns the states of all upstreams of a hub.
func DescribeAll(h *hub.Hub) []Server {
	all := []Server{}
	for _, u := range h.Upstreams() {
		all = append(all, Describe(h, u))
	}
	return all
}

// EventOf returns the JSON form of a hub's event.
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
