package secretmask_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/secretmask"
)

func TestIsSecretName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"API_KEY", "apiKey", "X-Auth-Token", "clientSecret", "DB_PASSWORD", "PGPASS_PASS", "access_token", "sig", "signingKey", "github-pat", "SESSION_ID", "Cookie", "key"} {
		if !secretmask.IsSecretName(name) {
			t.Errorf("%s is not secret", name)
		}
	}
	for _, name := range []string{"MAX_TOKENS", "PATH", "keyboard", "monkey", "author", "compass", "XDG_SESSION_TYPE", "pattern", "", "level"} {
		if secretmask.IsSecretName(name) {
			t.Errorf("%s is secret", name)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`Post "http://h/mcp?token=hunter2&page=1": dial tcp`:               `Post "http://h/mcp?token=****&page=1": dial tcp`,
		"cannot connect to postgres://u:PASS@db.example:5432/x":            "cannot connect to postgres://u:****@db.example:5432/x",
		"postgres://u:p@ss@h and mysql://root:se/cret@h/x":                 "postgres://u:****@h and mysql://root:****@h/x",
		"https://ghtoken@github.com/x":                                     "https://****@github.com/x",
		"git@github.com:x and https://git@github.com/x":                    "git@github.com:x and https://git@github.com/x",
		"see http://localhost:4873/@scope/x@1":                             "see http://localhost:4873/@scope/x@1",
		"Authorization: Bearer abc.def":                                    "Authorization: Bearer ****",
		`{"Authorization":"Basic dXNlcjpwYXNz","a":1}`:                     `{"Authorization":"Basic ****","a":1}`,
		`{"headers":"X-Api-Key: hush"}`:                                    `{"headers":"X-Api-Key: ****"}`,
		"Cookie: a=b; c=d":                                                 "Cookie: ****",
		"sent Bearer a1b2c3d4e5 twice":                                     "sent Bearer **** twice",
		"OPENAI_API_KEY=sk1 PATH=/bin":                                     "OPENAI_API_KEY=**** PATH=/bin",
		`{"cmd":"PGPASSWORD=x1 psql"}`:                                     `{"cmd":"PGPASSWORD=**** psql"}`,
		`{"cmd":"TOKEN=\"a1\" x"}`:                                         `{"cmd":"TOKEN=\"****\" x"}`,
		"run --token s3cret --verbose":                                     "run --token **** --verbose",
		`["--api-key","s3cret","x"]`:                                       `["--api-key","****","x"]`,
		"it has the key ghp_0123456789abcdef0123":                          "it has the key ****",
		"?key=AIza1 and key=name":                                          "?key=**** and key=name",
		"dowel status --token prints the header":                           "dowel status --token prints the header",
		"give --token TOKEN or token=VALUE, token=${TOKEN}":                "give --token TOKEN or token=VALUE, token=${TOKEN}",
		"Basic authentication, and Bearer authorization is missing":        "Basic authentication, and Bearer authorization is missing",
		"want Authorization: a header of HTTP":                             "want Authorization: a header of HTTP",
		"nothing secret in --verbose mail@example.com //x http://host:80/": "nothing secret in --verbose mail@example.com //x http://host:80/",
		"": "",
	} {
		got := secretmask.Text(text)
		if got != want {
			t.Errorf("%s\n became %s\n want   %s", text, got, want)
		}
		if again := secretmask.Text(got); again != got {
			t.Errorf("%s became %s the second time", got, again)
		}
		if json.Valid([]byte(text)) && !json.Valid([]byte(got)) {
			t.Errorf("%s is not JSON", got)
		}
	}
}

func TestArgs(t *testing.T) {
	t.Parallel()
	args := []string{"--token", "swordfish", "--password=open sesame", "-k", "v", "postgres://u:PASS@h/db", "API_KEY=swordfish", "sh -c 'x --secret swordfish'", "--api-key", "--verbose", "--token", "${TOKEN}"}
	want := []string{"--token", "****", "--password=****", "-k", "v", "postgres://u:****@h/db", "API_KEY=****", "sh -c 'x --secret ****'", "--api-key", "--verbose", "--token", "${TOKEN}"}
	if got := secretmask.Args(args); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	secrets := secretmask.SecretsOfArgs(args)
	for _, secret := range []string{"swordfish", "open sesame", "PASS"} {
		if !slices.Contains(secrets, secret) {
			t.Errorf("%q lacks %q", secrets, secret)
		}
	}
}

// A set hides its secrets in all forms, and what looks like one.
func TestSet(t *testing.T) {
	t.Parallel()
	s := secretmask.NewSet("open/se\"same", "true", "12", "")
	got := s.Text(`open/se"same open%2Fse%22same open/se\"same true 12 https://u:x1@h`)
	if want := "**** **** **** true 12 https://u:****@h"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Add("later-secret")
	if got := s.Known("a later-secret"); got != "a ****" {
		t.Error(got)
	}
}

// Texts of any form are masked in time that grows with their length.
func TestLongText(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"a", "://", "=", "--a ", "@", ":", "http://u:p", "Bearer ", "token="} {
		secretmask.Text(strings.Repeat(part, 1<<18/len(part)))
	}
}

// JSON stays valid with any text beside a name, and secrets after an escaped line break are found.
func TestJSONStaysValid(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":"Authorization:"}`:                              `{"a":"Authorization:"}`,
		`{"a":"Authorization: ","b":"x"}`:                     `{"a":"Authorization: ","b":"x"}`,
		`["token="]`:                                          `["token="]`,
		`{"a":"token=","b":1}`:                                `{"a":"token=","b":1}`,
		`{"authorization":{"type":"oauth"}}`:                  `{"authorization":{"type":"oauth"}}`,
		`{"x-api-key":12345}`:                                 `{"x-api-key":12345}`,
		`{"authorization":"Bearer abc123def"}`:                `{"authorization":"Bearer ****"}`,
		`{"err":"failed\nAuthorization: Basic YWxhZGRpbg=="}`: `{"err":"failed\nAuthorization: Basic ****"}`,
		`{"err":"failed\nsk-abcdefghijklmnop"}`:               `{"err":"failed\n****"}`,
		`{"err":"x\tghp_abcdefghijklmnop"}`:                   `{"err":"x\t****"}`,
	} {
		got := secretmask.Text(text)
		if got != want || !json.Valid([]byte(got)) {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, text := range []string{"https://u:p@h/?token=x --key y Authorization: Bearer z", "Authorization:", "x\nCookie= ", "token=\"", "sk-"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted, err := json.Marshal(map[string]string{"a": text})
		if err != nil {
			t.Fatal(err)
		}
		if masked := secretmask.Text(string(quoted)); !json.Valid([]byte(masked)) {
			t.Errorf("%s became %s", quoted, masked)
		}
	})
}
