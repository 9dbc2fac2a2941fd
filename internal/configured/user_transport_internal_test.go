package configured

import (
	"errors"
	"net/http"
	"testing"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// A user is not asked again for scopes that the last login has asked for.
func TestUserTransportAsksOnce(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	rs := as.Protect(t, http.NotFoundHandler(), "write")
	store, ctx := auth.NewStore(), t.Context()
	save := func(token string) *LoginTransport {
		err := store.Update(ctx, rs.URL, func(*auth.Record) (*auth.Record, error) {
			return &auth.Record{Server: rs.URL, Issuer: as.Issuer, AccessToken: token, TokenType: "Bearer"}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		login, err := newLoginTransport(rs.URL, &auth.Options{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		return login
	}
	u := &userTransport{mayAsk: true}
	u.login.Store(save(as.IssueToken(rs.URL)))
	needsLogin := func() bool {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, rs.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := u.RoundTrip(r)
		if err == nil {
			resp.Body.Close()
		}
		var refused *httpwire.RefusalError
		return errors.As(err, &refused) && refused.NeedsLogin
	}
	if !needsLogin() || len(u.lackedScopes()) != 1 {
		t.Errorf("a token without the scope leads to no login; the scopes are %v", u.lackedScopes())
	}
	u.setLogin(save(as.IssueToken(rs.URL)), u.lackedScopes())
	if needsLogin() {
		t.Error("the user is asked again for a scope that the last login has asked for")
	}
}
