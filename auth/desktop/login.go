package desktop

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/internal/webpage"
)

// loginTimeout bounds a login, because a user who closes the browser's window sends no redirect.
const loginTimeout = 5 * time.Minute

// Login is an [auth.Login] with the user's browser and a listener on a loopback address. All Logins
// of a process share one listener. Its methods may be called concurrently.
type Login struct {
	// Show is called with each page that the user must open, before the browser opens it. It must
	// be set, because a browser may open on another machine, or not at all.
	Show func(Page)
	// OpenBrowser opens a page. nil means the command in the environment variable BROWSER, run
	// without a shell, or else the user's default browser. An error is passed to Warn.
	OpenBrowser func(url string) error
	// Paste reads one line from the user: the URL to which the browser was redirected, for a
	// browser that cannot reach this process. Login calls it again after a line that does not
	// belong to the login, until ctx ends. nil means that the user cannot paste.
	Paste func(ctx context.Context) (string, error)
	// Warn is called with problems that do not end the login. nil ignores them.
	Warn func(error)
	// Timeout bounds a login. 0 means 5 minutes.
	Timeout time.Duration
}

// Page is a page that a user must open to log in.
type Page struct {
	Server string // URL of the MCP server
	URL    string // of the page
	// Port is the port at which the browser's redirect is awaited on this machine, or 0 if the user
	// must paste the redirected URL. For a login on another machine, forward it:
	// ssh -L PORT:127.0.0.1:PORT HOST
	Port int
}

// NoBrowser is a value of Login.OpenBrowser that leaves opening the page to the user.
func NoBrowser(string) error { return nil }

// Login implements [auth.Login].
func (l *Login) Login(ctx context.Context, r auth.LoginRequest) (url.Values, error) {
	timeout := l.Timeout
	if timeout == 0 {
		timeout = loginTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the login was not completed within %v", timeout))
	defer cancel()
	f, err := l.newFlow(r)
	if err != nil {
		return nil, err
	}
	defer f.endFlow()
	pageURL, err := r.Start(ctx, f.redirectURI)
	if err != nil {
		return nil, err
	}
	if err := f.begin(pageURL); err != nil {
		return nil, err
	}
	l.showPage(Page{Server: r.Server, URL: pageURL, Port: f.port})
	if l.Paste != nil {
		ctx, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.readPasted(ctx, f)
		}()
		defer func() {
			stop()
			waitBriefly(done) // so that the next login does not share its lines with this one
		}()
	}
	select {
	case values := <-f.redirects:
		return values, nil
	case <-ctx.Done():
		return nil, &auth.NeedsLogin{Server: r.Server, Reason: context.Cause(ctx).Error()}
	}
}

// waitBriefly waits until done is closed, for at most a second: a Paste may ignore its context.
func waitBriefly(done <-chan struct{}) {
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
	}
}

// newFlow returns a flow that listens at the first usable URI of r.RedirectURIs. If none is usable,
// it listens at a loopback address of its own choice; if r.Exact forbids that, the user must paste
// the redirected URL.
func (l *Login) newFlow(r auth.LoginRequest) (*flow, error) {
	var problems []error
	for _, uri := range r.RedirectURIs {
		f, err := redirects.listen(uri)
		if err == nil {
			return f, nil
		}
		problems = append(problems, err)
	}
	switch {
	case !r.Exact:
		f, err := redirects.listen("http://127.0.0.1" + callbackPath)
		if err == nil {
			return f, nil
		}
		problems = append(problems, err)
	case l.Paste != nil && len(r.RedirectURIs) > 0:
		l.warn(fmt.Errorf("%w: copy the URL of the page to which the browser is sent, and paste it here", errors.Join(problems...)))
		return newFlow(r.RedirectURIs[0], 0), nil
	}
	return nil, fmt.Errorf("cannot receive the answer of the login: %w", errors.Join(problems...))
}

func (l *Login) showPage(p Page) {
	if l.Show != nil {
		l.Show(p)
	}
	open := l.OpenBrowser
	if open == nil {
		open = webpage.Open
	}
	if err := open(p.URL); err != nil {
		l.warn(fmt.Errorf("%w: open the page yourself", err))
	}
}

func (l *Login) warn(err error) {
	if l.Warn != nil {
		l.Warn(err)
	}
}

// readPasted passes lines of the user to a flow until one belongs to it.
func (l *Login) readPasted(ctx context.Context, f *flow) {
	for {
		line, err := l.Paste(ctx)
		if err != nil || ctx.Err() != nil {
			return
		}
		if line == "" {
			continue
		}
		values, err := f.parsePasted(line)
		if err != nil {
			l.warn(err)
			continue
		}
		if f.claim() {
			f.redirects <- values
		}
		return
	}
}
