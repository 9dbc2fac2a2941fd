package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/draft"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/mcp"
)

// Controller carries out requests to a running dowel. Its methods are called concurrently. Users
// see the texts of its errors.
type Controller interface {
	// Status returns the status of this dowel.
	Status() Status
	// Do changes a server: verb is enable, disable or restart.
	Do(ctx context.Context, name, verb string) error
	// TrustQuestion returns the question whether a server of a project may run.
	TrustQuestion(name string) (TrustQuestion, error)
	// Trust stores the user's answer to a question, which is yes.
	Trust(ctx context.Context, name string, a TrustAnswer) error
	// OpenConsole returns a URL that opens the console and logs in, once.
	OpenConsole(ctx context.Context) (ConsoleLogin, error)
	// Token returns the token of the gateway's HTTP address. renew replaces the token first.
	Token(ctx context.Context, renew bool) (string, error)
	// Reload reads the configuration again.
	Reload(ctx context.Context) error
	// LogIn logs the user in at a server, and restarts it. It calls show with each page that the
	// user must open, and returns when the user is logged in. It fails if ctx ends first.
	LogIn(ctx context.Context, name string, show func(LoginPage)) error
	// Logout ends a login, for all replicas.
	Logout(ctx context.Context, l Login) error
	// Yield lets another dowel take the place of this one. The error says why it does not.
	Yield(ctx context.Context) error
	// RequestStop makes this dowel end soon. The error says why it does not.
	RequestStop(ctx context.Context) error
	// ClusterSync asks the cluster's NATS servers how they write to the disk.
	ClusterSync(ctx context.Context) replica.Sync
}

// ErrNoServer is wrapped by a Controller's error for an unknown server.
var ErrNoServer = errors.New("there is no such server")

// Login names a login of the user at a server.
type Login struct {
	// Name is the server's in the configuration of the command; empty for a server
	// without an entry.
	Name    string `json:"name,omitzero"`
	URL     string `json:"url"`
	Account string `json:"account,omitzero"` // as in auth.Options
}

// ConsoleLogin is the way into the console.
type ConsoleLogin struct {
	URL      string `json:"url"`
	ReadOnly bool   `json:"readOnly,omitzero"`
	Version  string `json:"version"` // of the running dowel
}

// Running is a running dowel, for its API. Recorder, Calls, Chats, Audit and Config may be nil.
type Running struct {
	// Life ends the streams of events, logs and the journal, which tells their readers that this
	// dowel ends.
	Life       context.Context
	Controller Controller
	Hub        *hub.Hub
	Recorder   *journal.Recorder // of the journal
	Calls      *Calls            // by the user
	Chats      *Chats            // with the agent
	Audit      *AuditTrail
	Moments    *Moments           // earlier states
	Config     func() *config.Set // returns the configuration in force; nil means that there is none
	Drafts     *draft.Desk        // edits the files of Config; nil if they cannot be edited
	Places     config.Options     // where Config looks for files; used only with Drafts

	door string // of the user's actions, for the audit log: console, or command
}

// Handler returns the HTTP handler of a running dowel. Only the user may reach it. gateway serves
// the gateway at /mcp; nil serves none.
func Handler(d Running, gateway http.Handler) http.Handler {
	mux, c := http.NewServeMux(), d.Controller
	d.addShared(mux, refuseOwnServers)
	mux.HandleFunc("POST /v1/authorize", refuseOwnServers(func(w http.ResponseWriter, _ *http.Request) { writeOutcome(w, nil) }))
	mux.HandleFunc("POST /v1/yield", func(w http.ResponseWriter, r *http.Request) { writeOutcome(w, c.Yield(r.Context())) })
	mux.HandleFunc("POST /v1/stop", refuseOwnServers(func(w http.ResponseWriter, r *http.Request) { writeOutcome(w, c.RequestStop(r.Context())) }))
	mux.HandleFunc("POST /v1/logout", refuseOwnServers(func(w http.ResponseWriter, r *http.Request) {
		var l Login
		err := json.NewDecoder(r.Body).Decode(&l)
		if err == nil {
			err = d.record("servers/logout", cmp.Or(l.Name, l.URL), l.Account, c.Logout(r.Context(), l))
		}
		writeOutcome(w, err)
	}))
	mux.HandleFunc("GET /v1/token", refuseOwnServers(func(w http.ResponseWriter, r *http.Request) { writeToken(w, r, c, false) }))
	mux.HandleFunc("POST /v1/token/renew", refuseOwnServers(func(w http.ResponseWriter, r *http.Request) { writeToken(w, r, c, true) }))
	mux.HandleFunc("POST /v1/console", refuseOwnServers(func(w http.ResponseWriter, r *http.Request) {
		login, err := c.OpenConsole(r.Context())
		writeResult(w, login, err)
	}))
	mux.HandleFunc("GET /v1/cluster/sync", refuseOwnServers(func(w http.ResponseWriter, r *http.Request) { writeJSON(w, c.ClusterSync(r.Context())) }))
	mux.HandleFunc("GET /v1/events", func(w http.ResponseWriter, r *http.Request) { serveEvents(w, r, d.Hub, d.Life) })
	if d.Chats != nil {
		mux.HandleFunc("POST /v1/agents", refuseOwnServers(d.serveAgent))
	}
	if d.Calls != nil {
		mux.HandleFunc("POST /v1/approvals", refuseOwnServers(d.serveApproval))
		mux.HandleFunc("POST /v1/approvals/{key}", refuseOwnServers(d.serveApprovalClosed))
	}
	if d.Recorder != nil {
		stream := refuseOwnServers(func(w http.ResponseWriter, r *http.Request) { streamJournal(w, r, d.Recorder, d.Life) })
		mux.HandleFunc("GET /v1/journal", stream)
		mux.HandleFunc("POST /v1/journal", stream)
	}
	if gateway != nil {
		mux.Handle("/mcp", gateway)
		mux.Handle("/mcp/", gateway)
	}
	return mux
}

// ConsoleAPI returns the part of the API that the console uses. It gives no credentials away, and
// does not serve the gateway. Its caller checks who may use it.
func ConsoleAPI(d Running) http.Handler {
	mux := http.NewServeMux()
	d.door = "console"
	d.addShared(mux, func(next http.HandlerFunc) http.HandlerFunc { return next })
	return mux
}

// addShared adds the paths that the control socket and the console have in common. protect guards
// everything that changes something, or that shows messages.
func (d Running) addShared(mux *http.ServeMux, protect func(http.HandlerFunc) http.HandlerFunc) {
	c := d.Controller
	mux.HandleFunc("GET /v1/status", d.serveState(func() any { return c.Status() }, func(m *moment) any { return m.status }))
	if d.Moments != nil {
		mux.HandleFunc("GET /v1/moments", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, map[string]any{"times": d.Moments.times()}) })
	}
	mux.HandleFunc("POST /v1/reload", protect(func(w http.ResponseWriter, r *http.Request) { writeOutcome(w, c.Reload(r.Context())) }))
	mux.HandleFunc("POST /v1/servers/{name}/{verb}", protect(func(w http.ResponseWriter, r *http.Request) {
		name, verb := r.PathValue("name"), r.PathValue("verb")
		writeOutcome(w, d.record("servers/"+verb, name, "", c.Do(r.Context(), name, verb)))
	}))
	mux.HandleFunc("POST /v1/servers/{name}/accept", protect(d.serveAccept))
	mux.HandleFunc("GET /v1/servers/{name}/trust", protect(func(w http.ResponseWriter, r *http.Request) {
		question, err := c.TrustQuestion(r.PathValue("name"))
		writeResult(w, question, err)
	}))
	mux.HandleFunc("POST /v1/servers/{name}/trust", protect(func(w http.ResponseWriter, r *http.Request) {
		var a TrustAnswer
		err := json.NewDecoder(r.Body).Decode(&a)
		if err == nil {
			err = d.record("servers/trust", r.PathValue("name"), "", c.Trust(r.Context(), r.PathValue("name"), a))
		}
		writeOutcome(w, err)
	}))
	mux.HandleFunc("POST /v1/servers/{name}/login", protect(d.serveLogin))
	mux.HandleFunc("POST /v1/servers/{name}/doctor", protect(func(w http.ResponseWriter, r *http.Request) { streamDoctor(w, r, d.Hub, d.Life) }))
	mux.HandleFunc("GET /v1/servers/{name}/logs", func(w http.ResponseWriter, r *http.Request) { streamLogs(w, r, d.Hub, d.Life) })
	d.addTools(mux, protect)
	if d.Chats != nil {
		d.addChats(mux, protect)
	}
	if d.Audit != nil {
		mux.HandleFunc("GET /v1/audit", protect(d.serveAudit))
	}
	if d.Config != nil {
		mux.HandleFunc("GET /v1/config", protect(d.serveState(func() any { return DescribeConfig(d.Config()) }, func(m *moment) any { return DescribeConfig(m.config) })))
		if d.Drafts != nil {
			mux.HandleFunc("GET /v1/config/file", protect(d.serveConfigFile))
			mux.HandleFunc("POST /v1/config/check", protect(d.serveConfigCheck))
			mux.HandleFunc("POST /v1/config/save", protect(d.serveConfigSave))
			d.addImports(mux, protect)
		}
	}
	if d.Recorder != nil {
		mux.HandleFunc("GET /v1/stream", protect(d.serveStream))
		mux.HandleFunc("GET /v1/clients", protect(d.serveClients))
		mux.HandleFunc("GET /v1/operations/{id}", protect(d.serveOperation))
		mux.HandleFunc("GET /v1/frames/{seq}", protect(d.serveFrame))
		mux.HandleFunc("GET /v1/operations/{id}/call", protect(d.serveRepeatable))
		mux.HandleFunc("GET /v1/compare", protect(d.serveComparison))
		mux.HandleFunc("GET /v1/export", protect(d.serveExport))
	}
}

// TrustQuestion is the question whether a server of a project may run as the user.
type TrustQuestion struct {
	Name string `json:"name"`
	File string `json:"file"`
	// Seen identifies the question, for its answer.
	Seen string `json:"seen"`
	// Facts say what the server can do. Changes are the differences since the user allowed it.
	Facts   []string `json:"facts"`
	Changes []string `json:"changes,omitempty"`
	// HasFiles: the content of files of the project is among the facts.
	HasFiles bool `json:"hasFiles,omitzero"`
}

// TrustAnswer allows a server to run as the user.
type TrustAnswer struct {
	Seen string `json:"seen"` // of the question
	// Folder covers the server whatever the files of the project's folder become.
	Folder bool `json:"folder,omitzero"`
}

// writeResult answers with a value or an error.
func writeResult(w http.ResponseWriter, value any, err error) {
	if err != nil {
		writeOutcome(w, err)
		return
	}
	writeJSON(w, value)
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // a client that is gone needs no answer
}

// tokenAnswer is the JSON form of the gateway's token.
type tokenAnswer struct {
	Token string `json:"token"`
}

// writeToken answers with the token of the gateway's HTTP address, or an error.
func writeToken(w http.ResponseWriter, r *http.Request, c Controller, renew bool) {
	token, err := c.Token(r.Context(), renew)
	writeResult(w, tokenAnswer{token}, err)
}

// failure is the JSON form of an error.
type failure struct {
	Error string `json:"error"`
}

// writeOutcome answers with an empty object or an error.
func writeOutcome(w http.ResponseWriter, err error) {
	if err == nil {
		writeJSON(w, struct{}{})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(failure{err.Error()})
}

// streamLogs answers with the history of a server, one JSON object a line. With ?follow it
// continues with new events.
func streamLogs(w http.ResponseWriter, r *http.Request, h *hub.Hub, life context.Context) {
	ctx, end := requestContext(r, life)
	defer end()
	name := r.PathValue("name")
	u := h.Upstream(name)
	if u == nil {
		writeOutcome(w, ErrNoServer)
		return
	}
	lines := newLineWriter(w)
	follow := h.Events(ctx, hub.StateChanged, hub.StderrWritten)
	for _, e := range u.History() {
		_ = lines.out.Encode(EventOf(e))
	}
	if r.URL.Query().Get("follow") == "" {
		return
	}
	_ = lines.flush()
	for e := range follow {
		if e.Upstream == name && lines.writeLine(EventOf(e)) != nil {
			return
		}
	}
}

// serveEvents answers with events of all servers, one JSON object a line.
func serveEvents(w http.ResponseWriter, r *http.Request, h *hub.Hub, life context.Context) {
	ctx, end := requestContext(r, life)
	defer end()
	lines := newLineWriter(w)
	w.WriteHeader(http.StatusOK)
	all := h.Events(ctx, hub.StateChanged, hub.CatalogChanged)
	_ = lines.flush()
	for e := range all {
		if lines.writeLine(EventOf(e)) != nil {
			return
		}
	}
}

// HeaderClient is the header field with the name of the client that a process speaks for.
const HeaderClient = "Dowel-Client"

// HeaderToolSearch is the header field with which a process gets the pinned tools and a search in
// place of all tools, for a client that was started with --tool-search. Its value is "true".
const HeaderToolSearch = "Dowel-Tool-Search"

// Principal returns the principal of a request by [HeaderClient]. It is not verified: only the user
// can reach the endpoint of [Handler].
func Principal(r *http.Request) mcp.Principal { return mcp.Principal{ID: r.Header.Get(HeaderClient)} }
