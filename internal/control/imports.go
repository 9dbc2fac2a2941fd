package control

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/transfer"
	"github.com/dowel-mcp/dowel/internal/importing"
)

// Imports are the servers of the user's other tools, and the file to which they can be added.
type Imports struct {
	File    string         `json:"file"`
	Servers []ImportServer `json:"servers"`
	// Problems are the problems of files that could not be read.
	Problems []string `json:"problems,omitempty"`
}

// ImportServer is a server of another tool, without its secrets.
type ImportServer struct {
	ImportChoice
	Tool string `json:"tool"` // its title
	// As is the name in the user's file, if that is another one.
	As string `json:"as,omitzero"`
	// Why says why the server cannot be added; "" if it can.
	Why    string   `json:"why,omitzero"`
	Target string   `json:"target"` // the command or the URL
	Notes  []string `json:"notes,omitempty"`
	Facts  []string `json:"facts"` // everything that decides what it can do
}

// ImportChoice names a server of another tool.
type ImportChoice struct {
	Path string `json:"path"` // of the tool's file
	Name string `json:"name"`
	// Seen identifies the entry as it was shown: another entry is not added.
	Seen string `json:"seen"`
}

// ImportRequest adds servers of other tools to the user's file.
type ImportRequest struct {
	Servers []ImportChoice `json:"servers"`
	// TrustAnnotations trusts the servers to say which of their tools are read-only.
	TrustAnnotations bool `json:"trustAnnotations,omitzero"`
}

// ImportOutcome names the added servers. Warning is a problem of the new configuration, or "".
type ImportOutcome struct {
	File    string   `json:"file"`
	Added   []string `json:"added"`
	Warning string   `json:"warning,omitzero"`
}

// ListImports returns the servers of the user's other tools.
func ListImports(o config.Options) Imports {
	own := config.Load(o)
	to := importing.UserDestination(own, o)
	found := importing.Find(own, o, to, nil, nil)
	all := Imports{File: to.Path, Servers: []ImportServer{}, Problems: found.Problems}
	for _, f := range found.Findings {
		s := ImportServer{ImportChoice: ImportChoice{f.Path, f.Name, digestEntry(f)}, Tool: f.Dialect, Why: f.SkipReason, Target: f.DescribeTarget(),
			Notes: f.DescribeNotes(o), Facts: f.TrustFacts(config.Variables{}).Lines()}
		if d, err := config.LookupDialect(f.Dialect); err == nil {
			s.Tool = d.Title
		}
		if f.NewName != f.Name {
			s.As = f.NewName
		}
		all.Servers = append(all.Servers, s)
	}
	return all
}

// importSalt keeps the digests of entries, which may have secrets, from being guessed.
var importSalt = rand.Text()

// digestEntry identifies everything in the entry of a server.
func digestEntry(f importing.Finding) string {
	text, err := json.Marshal(transfer.Entry(f.Server, ""))
	if err != nil {
		return "" // impossible: entries are written as JSON
	}
	sum := hmac.New(sha256.New, []byte(importSalt))
	sum.Write(text)
	return hex.EncodeToString(sum.Sum(nil))
}

// AddImports adds servers of other tools to the user's file. If one of them cannot be added any
// more, it adds none.
func AddImports(o config.Options, q ImportRequest) (ImportOutcome, error) {
	if len(q.Servers) == 0 {
		return ImportOutcome{}, errors.New("choose at least one server")
	}
	own := config.Load(o)
	to := importing.UserDestination(own, o)
	if err := to.Check(own); err != nil {
		return ImportOutcome{}, err
	}
	found := importing.Find(own, o, to, nil, nil).Findings
	var added []importing.Finding
	outcome := ImportOutcome{File: to.Path}
	for _, choice := range q.Servers {
		i := slices.IndexFunc(found, func(f importing.Finding) bool {
			return f.Path == choice.Path && f.Name == choice.Name && f.SkipReason == "" && digestEntry(f) == choice.Seen
		})
		if i < 0 {
			return ImportOutcome{}, fmt.Errorf("nothing was added: %s in %s has changed or cannot be added; look again", choice.Name, choice.Path)
		}
		added = append(added, found[i])
		outcome.Added = append(outcome.Added, found[i].NewName)
	}
	if q.TrustAnnotations {
		added = importing.WithTrustedAnnotations(added)
	}
	return outcome, importing.Write(added, to)
}

// addImports adds the paths with which a user imports servers.
func (d Running) addImports(mux *http.ServeMux, protect func(http.HandlerFunc) http.HandlerFunc) {
	mux.HandleFunc("GET /v1/imports", protect(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, ListImports(d.Places)) }))
	mux.HandleFunc("POST /v1/imports", protect(func(w http.ResponseWriter, r *http.Request) {
		var q ImportRequest
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxConfigBody)).Decode(&q); err != nil {
			writeOutcome(w, err)
			return
		}
		outcome, err := AddImports(d.Places, q)
		err = d.record("config/import", "", strings.Join(outcome.Added, " "), err)
		if err == nil {
			if failed := d.Controller.Reload(r.Context()); failed != nil {
				outcome.Warning = "the servers are added, but the configuration has a problem: " + failed.Error()
			}
		}
		writeResult(w, outcome, err)
	}))
}
