package configured

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/oauth"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/suggest"
)

// errNoLogin is wrapped by the error of [Source.Login] for a server at which dowel does not log in.
var errNoLogin = errors.New("dowel does not log in at it")

// checkLogin returns an error if dowel does not log in at a server.
func checkLogin(d *config.Definition) error {
	switch {
	case d.Kind == config.Stdio:
		return fmt.Errorf("%w: it is started by a command, which has its own credentials", errNoLogin)
	case d.OAuth != nil && d.OAuth.Off:
		return fmt.Errorf("%w: its entry says so with oauth, at %v", errNoLogin, d.Server.Where("oauth"))
	}
	for name := range d.Headers {
		if textproto.CanonicalMIMEHeaderKey(name) == "Authorization" {
			return fmt.Errorf("%w: its entry has the header %s, at %v: renew that, or remove it to log in", errNoLogin, name, d.Server.Where("headers."+name))
		}
	}
	return nil
}

// newLogin returns the authorization of the requests to a server. login may be nil.
func newLogin(d *config.Definition, store auth.Store, login auth.Login) (*LoginTransport, error) {
	if err := checkLogin(d); err != nil {
		return nil, err
	}
	o, err := loginOptions(d)
	if err != nil {
		return nil, err
	}
	o.Store, o.Login = store, login
	return newLoginTransport(d.URL, o)
}

// loginClient returns the HTTP client of a server, or nil for the default one. A nil store logs in
// nowhere.
func loginClient(d *config.Definition, store auth.Store) (*http.Client, error) {
	if store == nil {
		return nil, nil
	}
	t, err := newLogin(d, store, nil)
	if errors.Is(err, errNoLogin) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: t}, nil
}

// LoginTransport authorizes the requests to a server.
type LoginTransport struct {
	*auth.Transport
	server string
	opts   auth.Options
}

func newLoginTransport(server string, o *auth.Options) (*LoginTransport, error) {
	t, err := auth.NewTransport(server, o)
	if err != nil {
		return nil, err
	}
	return &LoginTransport{t, server, *o}, nil
}

// Server returns the URL of the server.
func (t *LoginTransport) Server() string { return t.server }

// Account returns the name that keeps the login apart from others at the same server; "" for none.
func (t *LoginTransport) Account() string { return t.opts.Account }

// RedirectURI returns the redirect URI of a client that the user registers for this login: the
// configured one, or the first one that dowel listens at.
func (t *LoginTransport) RedirectURI() string {
	if uri := t.opts.Client.RedirectURI; uri != "" {
		return uri
	}
	return fmt.Sprintf("http://127.0.0.1:%d/callback", oauth.FirstRedirectPort)
}

// WithBase returns a copy that sends its requests with base.
func (t *LoginTransport) WithBase(base http.RoundTripper) http.RoundTripper {
	o := t.opts
	o.Base = base
	other, err := newLoginTransport(t.server, &o)
	if err != nil { // impossible: only the base is another one
		return t
	}
	return other
}

// LoginOf returns the authorization of a client of package configured, or nil without one.
func LoginOf(c *http.Client) *LoginTransport {
	if c == nil {
		return nil
	}
	t, _ := c.Transport.(*LoginTransport)
	return t
}

// loginOptions converts the login configuration of an entry.
func loginOptions(d *config.Definition) (*auth.Options, error) {
	from := d.OAuth
	if from == nil {
		return &auth.Options{Account: loginAccount(d)}, nil
	}
	o := &auth.Options{
		Account: loginAccount(d), Scopes: slices.Clone(from.Scopes), DPoP: from.DPoP, ClientCredentials: from.Grant == config.ClientCredentials,
		Client: auth.Client{ID: from.ClientID, Secret: from.ClientSecret, DocumentURL: from.ClientDocument, RedirectURI: from.RedirectURI},
		Server: auth.Server{
			Issuer: from.Issuer, MetadataURL: from.MetadataURL, AuthorizationURL: from.AuthorizationURL, TokenURL: from.TokenURL,
			Resource: from.Resource, Params: from.Params, AssumePKCE: from.AssumePKCE,
		},
	}
	if from.Resource == config.OmitResource {
		o.Server.Resource, o.Server.OmitResource = "", true
	}
	if from.CallbackPort != "" && from.RedirectURI == "" {
		o.Client.RedirectURI = "http://localhost:" + from.CallbackPort + "/callback"
	}
	if from.PrivateKey != "" {
		key, err := readPrivateKey(d)
		if err != nil {
			return nil, err
		}
		o.Client.Key = key
	}
	return o, nil
}

// loginAccount returns the account of an entry. An entry of a project that says how to log in has
// logins of its own: it must not use tokens that the user got otherwise.
func loginAccount(d *config.Definition) string {
	if d.OAuth == nil {
		return ""
	}
	if d.Server.Scope == config.Project {
		return "project " + d.Server.Path + " " + d.OAuth.Account
	}
	return d.OAuth.Account
}

// readPrivateKey reads the key of an entry. Its path is relative to the file of the entry.
func readPrivateKey(d *config.Definition) (crypto.Signer, error) {
	path := d.OAuth.PrivateKey
	if config.IsKeyText(path) { // errors must not show it
		return nil, fmt.Errorf("oauth.privateKey at %v has a key: want the path of a file with the key", d.Server.Where("oauth.privateKey"))
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(d.Server.Path), path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("oauth.privateKey at %v: %w", d.Server.Where("oauth.privateKey"), err)
	}
	key, err := parsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("oauth.privateKey at %v: %s: %w", d.Server.Where("oauth.privateKey"), path, err)
	}
	return key, nil
}

func parsePrivateKey(text []byte) (crypto.Signer, error) {
	wrong := errors.New("want a private key in PEM: PKCS #8, or EC or RSA PRIVATE KEY, without a password")
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, wrong
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return nil, wrong
	}
	return signer, nil
}

// ErrNoServer reports that the configuration has no server of a name. The name follows it.
var ErrNoServer = errors.New("no server of your configuration is called")

// Login returns the authorization of the requests to a server of the configuration, with logins of
// login. It reads the files again. The error says why dowel does not log in there.
func (s *Source) Login(name string, login auth.Login) (*LoginTransport, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readFiles()
	var names []string
	for _, server := range s.servers {
		if server.Name != name {
			names = append(names, server.Name)
			continue
		}
		if !server.Valid() {
			return nil, errors.New(describeProblems(server.Problems))
		}
		if u, needed := s.checkTrust(server); needed {
			return nil, errors.New("it needs your trust: " + u.Reason())
		}
		d, problems := server.Resolve(s.variables())
		if d == nil {
			return nil, errors.New(describeProblems(problems))
		}
		return newLogin(d, s.opts.Logins, login)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w %s: it has no servers; dowel add adds one, and dowel import copies those of other tools", ErrNoServer, name)
	}
	return nil, fmt.Errorf("%w %s%s", ErrNoServer, name, suggest.Hint(name, names))
}

// NewURLLogin returns the authorization of the requests to a server outside the configuration.
func NewURLLogin(at string, store auth.Store, login auth.Login) (*LoginTransport, error) {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) {
		return nil, fmt.Errorf("%s: write a URL such as https://mcp.example.com/mcp", secretmask.URL(at))
	}
	return newLoginTransport(at, &auth.Options{Store: store, Login: login})
}
