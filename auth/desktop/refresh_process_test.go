package desktop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// childRequests is the number of requests that a child process makes at once.
const childRequests = 20

// runRequestChild is the program of the child processes of this file. It makes requests to the
// protected server at address, with the logins in folder. With dies, it kills itself when it has
// received the answer to a refresh, before it can store the tokens.
func runRequestChild(folder, address string, dies bool) int {
	store, err := OpenStore(folder, &StoreOptions{NoKeyring: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	o := &auth.Options{Store: store}
	if dies {
		o.Base = dyingTransport{}
	}
	tr, err := auth.NewTransport(address, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var all sync.WaitGroup
	failures := make([]error, childRequests)
	for i := range childRequests {
		all.Go(func() { failures[i] = postOnce(context.Background(), tr, address) })
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// postOnce sends a request, which must be answered with status 200.
func postOnce(ctx context.Context, tr http.RoundTripper, address string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	resp, err := tr.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// dyingTransport kills the process after the answer of a token endpoint.
type dyingTransport struct{}

func (dyingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "/token") {
		_, _ = io.ReadAll(resp.Body)
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {} // until the process is gone
	}
	return resp, err
}

// userLogin is a user who approves each login in a browser.
type userLogin struct {
	as     *authtest.Server
	logins int
}

func (u *userLogin) Login(ctx context.Context, r auth.LoginRequest) (url.Values, error) {
	u.logins++
	page, err := r.Start(ctx, "http://127.0.0.1:13316/callback")
	if err != nil {
		return nil, err
	}
	to, err := u.as.Approve(ctx, page)
	if err != nil {
		return nil, err
	}
	return to.Query(), nil
}

// sharedLogin is a login in the folder of a store, whose token has expired.
type sharedLogin struct {
	as     *authtest.Server
	rs     *authtest.Resource
	user   *userLogin
	folder string
	auth.Options
}

func newSharedLogin(t *testing.T) *sharedLogin {
	t.Helper()
	as := authtest.Start(t, nil)
	s := &sharedLogin{as: as, user: &userLogin{as: as}, folder: t.TempDir()}
	s.rs = as.Protect(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	store, err := OpenStore(s.folder, &StoreOptions{NoKeyring: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Options = auth.Options{Store: store, Login: s.user}
	s.mustPost(t)
	as.Advance(2 * time.Hour)
	return s
}

// mustPost sends a request with a new Transport.
func (s *sharedLogin) mustPost(t *testing.T) {
	t.Helper()
	tr, err := auth.NewTransport(s.rs.URL, &s.Options)
	if err == nil {
		err = postOnce(t.Context(), tr, s.rs.URL)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// newChild returns a process that makes requests with the login.
func (s *sharedLogin) newChild(t *testing.T, more ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(append(os.Environ(), "TEST_REQUEST_FOLDER="+s.folder, "TEST_REQUEST_ADDRESS="+s.rs.URL), more...)
	return cmd
}

// Three processes, each with twenty requests at once, refresh one expired token once.
func TestProcessesRefreshOnce(t *testing.T) {
	t.Parallel()
	s := newSharedLogin(t)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if out, err := s.newChild(t).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	if n := s.as.Count("refresh_token"); n != 1 || s.user.logins != 1 {
		t.Errorf("%d refreshes and %d logins, want 1 and 1", n, s.user.logins)
	}
}

// A process that is killed between the answer to a refresh and the write loses the login, since its
// refresh token was used. The next process finds a whole record and no lock, and logs in once.
func TestKilledRefresh(t *testing.T) {
	t.Parallel()
	s := newSharedLogin(t)
	out, err := s.newChild(t, "TEST_REQUEST_DIES=1").CombinedOutput()
	var exited *exec.ExitError
	if !errors.As(err, &exited) || exited.ExitCode() == 0 || len(out) > 0 {
		t.Fatalf("the child was not killed: %v, %s", err, out)
	}
	if n := s.as.Count("refresh_token"); n != 1 {
		t.Fatalf("%d refreshes, want 1", n)
	}
	s.mustPost(t)
	s.mustPost(t)
	if n := s.as.Count("refresh_token"); n != 2 || s.user.logins != 2 {
		t.Errorf("%d refreshes and %d logins, want 2 and 2", n, s.user.logins)
	}
}
