// Package console serves the console, the web page on which a user sees and steers a running dowel.
//
//	c := console.New(console.Options{API: api})
//	http.Handle("/console/", c)
//	fmt.Println(c.LoginURL("http://127.0.0.1:7800"))
//
// The page is static files without data. It reads and changes everything through an API, below
// /console/api/, which needs a bearer token. The only way to a token is a ticket of
// [Console.LoginURL], which counts once and for a minute: nothing over HTTP gives a ticket or a
// token away. Cookies are not used, so a browser sends no credentials by itself.
//
// Every route refuses requests with a foreign host name, and requests that a page of another origin
// makes a browser send, also a page of another port of this machine.
package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

// Options configure a [Console].
type Options struct {
	// API serves the paths below /console/api, without that prefix. It is required. Only requests
	// that have passed all checks reach it.
	API http.Handler
	// Prefix is the path of the console, "" means [DefaultPrefix].
	Prefix string
	// ReadOnly refuses everything but reading.
	ReadOnly bool
	// Hosts are further host names under which browsers reach the console; * is any. Names of this
	// machine are always allowed at a loopback address, and addresses at any other.
	Hosts []string
	// Folder has the files of the page, for their development. "" means the built-in ones.
	Folder string
	// Authorize decides on requests for the API, in place of tickets and tokens. The page shows its
	// error. nil means tickets.
	Authorize func(*http.Request) error
	// Hidden are the screens that the page does not have.
	Hidden []string
	// IsEmbedded says that the console belongs to another program than dowel, for advice.
	IsEmbedded bool
}

// DefaultPrefix is the default of [Options].Prefix.
const DefaultPrefix = "/console"

// Console is an [http.Handler] for all paths below its prefix. It is safe for concurrent use.
type Console struct {
	options Options
	files   *fileSet
	logins  logins
}

// New returns a console.
func New(o Options) *Console {
	o.Prefix = cmp.Or(o.Prefix, DefaultPrefix)
	return &Console{options: o, files: loadFiles(o.Folder)}
}

// LoginURL returns a URL below base, such as http://127.0.0.1:7800, that opens the console and logs
// in. It counts once and for [TicketLife].
func (c *Console) LoginURL(base string) string {
	return base + c.options.Prefix + "/#login=" + c.logins.newTicket()
}

// ServeHTTP implements [http.Handler].
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityFields(w.Header())
	path, ok := strings.CutPrefix(r.URL.Path, c.options.Prefix)
	if err := c.checkOrigin(r); err != nil {
		refuse(w, http.StatusForbidden, err.Error())
		return
	}
	switch {
	case !ok || path != "" && path[0] != '/':
		refuse(w, http.StatusNotFound, "the console is at "+c.options.Prefix+"/")
	case path == "":
		http.Redirect(w, r, c.options.Prefix+"/", http.StatusFound)
	case strings.HasPrefix(path, "/api/"):
		c.serveAPI(w, r, strings.TrimPrefix(path, "/api"))
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		refuse(w, http.StatusMethodNotAllowed, "the files of the console can only be read")
	default:
		c.files.serveFile(w, r, c.options, path)
	}
}

// loginPath is the only path of the API that needs no token.
const loginPath = "/login"

// serveAPI serves a request for the API, or for a login.
func (c *Console) serveAPI(w http.ResponseWriter, r *http.Request, path string) {
	w.Header().Set("Cache-Control", "no-store")
	if err := checkBody(r); err != nil {
		refuse(w, http.StatusUnsupportedMediaType, err.Error())
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if path == loginPath {
		c.serveLogin(w, r)
		return
	}
	ctx, end, err := c.authorize(r)
	if err != nil {
		refuse(w, http.StatusUnauthorized, c.adviseProgram(err.Error(), ": run dowel console"))
		return
	}
	defer end()
	switch {
	case path == "/logout" && r.Method == http.MethodPost:
		c.logins.revoke(r)
		writeJSON(w, struct{}{})
	case c.options.ReadOnly && r.Method != http.MethodGet:
		refuse(w, http.StatusForbidden, c.adviseProgram("this console only reads", ": start dowel with --console=on to change something here"))
	default:
		http.StripPrefix(c.options.Prefix+"/api", c.options.API).ServeHTTP(w, r.WithContext(ctx))
	}
}

// maxBody limits the body of a request, in bytes.
const maxBody = 1 << 20

// serveLogin exchanges a ticket for a token.
func (c *Console) serveLogin(w http.ResponseWriter, r *http.Request) {
	var sent struct {
		Ticket string `json:"ticket"`
	}
	if r.Method != http.MethodPost {
		refuse(w, http.StatusMethodNotAllowed, "a login is a POST")
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
		refuse(w, http.StatusBadRequest, `want {"ticket": "…"}`)
		return
	}
	token, err := c.logins.redeem(sent.Ticket)
	if err != nil {
		refuse(w, http.StatusUnauthorized, c.adviseProgram(err.Error(), ": run dowel console for a new one"))
		return
	}
	writeJSON(w, map[string]any{"token": token, "readOnly": c.options.ReadOnly})
}

// authorize returns the context of a request that may use the API. The caller must call end.
func (c *Console) authorize(r *http.Request) (ctx context.Context, end func(), err error) {
	if c.options.Authorize == nil {
		return c.logins.authorize(r)
	}
	return r.Context(), func() {}, c.options.Authorize(r)
}

// adviseProgram adds advice that only users of dowel can follow to a reason.
func (c *Console) adviseProgram(reason, advice string) string {
	if c.options.IsEmbedded {
		return reason
	}
	return reason + advice
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // a page that is gone needs no answer
}

// refuse answers with an error as JSON. A browser shows it as text.
func refuse(w http.ResponseWriter, status int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": reason})
}
