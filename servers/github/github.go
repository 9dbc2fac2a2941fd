// Package github is an MCP server for issues and files of GitHub.
//
// Its tools are list_issues, read_issue, create_issue, comment_issue and read_file. Each file of a
// default branch is a resource github:///{owner}/{repo}/{+path}. Clients can complete its
// variables, and clients that subscribe to a file are notified when it changes.
package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/servers/internal/polling"
	"github.com/google/go-github/v88/github"
)

// Limits of a request to the API.
const (
	maxBody = 8 << 20 // bytes
	timeout = 30 * time.Second
)

// Version is the version that the server reports.
const Version = "1.0.0"

// Options configure a [Server]. The zero value reads public repositories of github.com.
type Options struct {
	// URL is the address of the API. The default is the API of github.com.
	URL string
	// Token authorizes the requests. It may be empty.
	Token string
	// ReadOnly removes the tools that write.
	ReadOnly bool
	// Poll is how often the files that clients are subscribed to are compared for changes. The
	// default is [DefaultPoll]. Half of the rate limit is left to the tools.
	Poll time.Duration
}

// Server is a [server.Server] of an API. Call Close to release its connections.
type Server struct {
	*server.Server
	api       *github.Client
	hasToken  bool
	transport *http.Transport
	poller    *polling.Poller
	answers   answerCache
	tags      tagCache
}

// New returns a server of the API.
func New(o Options) (*Server, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = timeout
	client := &http.Client{Transport: bodyLimit{transport}, CheckRedirect: stayOnHost}
	options := []github.ClientOptionsFunc{github.WithHTTPClient(client)}
	if o.Token != "" {
		options = append(options, github.WithAuthToken(o.Token))
	}
	if o.URL != "" {
		base, err := url.Parse(strings.TrimSuffix(o.URL, "/") + "/")
		if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" {
			return nil, fmt.Errorf("%q is not the URL of an API: want one such as https://github.example.com/api/v3/", o.URL)
		}
		text := base.String()
		options = append(options, github.WithURLs(&text, &text))
	}
	api, err := github.NewClient(options...)
	if err != nil {
		return nil, err
	}
	s := &Server{Server: server.New("github", Version, nil), api: api, hasToken: o.Token != "", transport: transport}
	s.addTools(o.ReadOnly)
	server.Resource(s.Server, "github:///{owner}/{repo}/{+path}", "A file of the default branch.", s.readResource, server.ResourceOptions{
		Name:     "file",
		Complete: map[string]server.CompleteFunc{"owner": s.completeOwner, "repo": s.completeRepo, "path": s.completePath},
	})
	if o.Poll <= 0 {
		o.Poll = DefaultPoll
	}
	s.poller = polling.New(polling.Options{
		Interval: o.Poll,
		Accepts:  func(uri string) bool { _, err := contentsPath(uri); return err == nil },
		Look:     s.readState,
		Changed:  s.Updated,
	})
	s.Use(s.poller.Middleware)
	return s, nil
}

// Close ends all subscriptions and closes idle connections.
func (s *Server) Close() error {
	s.poller.Close()
	err := s.Server.Close()
	s.transport.CloseIdleConnections() // after the calls that use them have ended
	return err
}

// FindToken returns the token in GITHUB_TOKEN or GH_TOKEN, or else the token of gh if it is
// installed and logged in. It returns "" if there is none.
func FindToken(ctx context.Context) string {
	if token := cmp.Or(os.Getenv("GITHUB_TOKEN"), os.Getenv("GH_TOKEN")); token != "" {
		return token
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "gh", "auth", "token").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// stayOnHost refuses redirects that would take the token to another host.
func stayOnHost(next *http.Request, earlier []*http.Request) error {
	if first := earlier[0].URL; next.URL.Host != first.Host || next.URL.Scheme != first.Scheme {
		return fmt.Errorf("the API redirects to %s: give that address with url=", next.URL.Host)
	}
	if len(earlier) > 5 {
		return errors.New("too many redirects")
	}
	return nil
}

// A bodyLimit fails when a body is longer than maxBody.
type bodyLimit struct{ next http.RoundTripper }

func (l bodyLimit) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxBody)
	}
	return response, err
}

// readResource returns a file as text, or as binary data if it is not UTF-8.
func (s *Server) readResource(ctx context.Context, in struct {
	Owner string `uri:"owner"`
	Repo  string `uri:"repo"`
	Path  string `uri:"path"`
}) (out mcp.ResourceContents, err error) {
	if !isName(in.Owner) || !isName(in.Repo) {
		return out, mcp.ResourceNotFound(server.URI(ctx))
	}
	content, err := s.getFile(ctx, fileIn{repoIn: repoIn{in.Owner, in.Repo}, Path: in.Path})
	switch {
	case isNotFound(err), errors.Is(err, errFolder):
		return out, mcp.ResourceNotFound(server.URI(ctx))
	case err != nil:
		return out, clientError(err)
	case utf8.ValidString(content):
		out.Text = content
	default:
		out.Blob = []byte(content)
	}
	return out, nil
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// isName reports whether a text may be a part of the API's path: the name of an owner or a
// repository.
func isName(text string) bool { return nameForm.MatchString(text) && strings.Trim(text, ".") != "" }

// isNotFound reports whether the API answered 404.
func isNotFound(err error) bool {
	failed, ok := errors.AsType[*github.ErrorResponse](err)
	return ok && failed.Response.StatusCode == http.StatusNotFound
}

// clientError returns the error of the protocol for a request to the API that failed. Resources and
// completion need it, because a client does not see other errors of theirs.
func clientError(err error) error {
	return mcp.Errorf(jsonrpc.CodeInternal, "%v", explainError(err))
}

// explainError makes errors of the API useful to a model.
func explainError(err error) error {
	if limited, ok := errors.AsType[*github.RateLimitError](err); ok {
		return fmt.Errorf("GitHub's rate limit is used up until %s", limited.Rate.Reset.UTC().Format(time.RFC3339))
	}
	if limited, ok := errors.AsType[*github.AbuseRateLimitError](err); ok {
		return fmt.Errorf("GitHub asks for a pause: try again in %v", limited.GetRetryAfter())
	}
	if failed, ok := errors.AsType[*github.ErrorResponse](err); ok {
		text := fmt.Sprintf("GitHub answers %d: %s", failed.Response.StatusCode, failed.Message)
		for _, e := range failed.Errors {
			text += fmt.Sprintf("; %s %s %s", e.Field, e.Code, e.Message)
		}
		switch failed.Response.StatusCode {
		case http.StatusUnauthorized:
			text += "; set GITHUB_TOKEN to a valid token"
		case http.StatusNotFound:
			text += "; it does not exist, or the token may not see it"
		}
		return errors.New(text)
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Errorf("the answer is longer than %d bytes", maxBody)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("GitHub's answer ended early: try again")
	}
	return err
}
