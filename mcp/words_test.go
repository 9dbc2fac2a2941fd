package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/wiretest"
	"github.com/dowel-mcp/dowel/mcp"
)

// The revisions before the latest one, oldest first.
const (
	r1 = mcp.Revision20241105
	r2 = mcp.Revision20250326
	r3 = mcp.Revision20250618
	r4 = mcp.Revision20251125
)

// validator returns the validator of a revision's schema.
func validator(t *testing.T, r mcp.Revision) *wiretest.Validator {
	t.Helper()
	v, err := wiretest.For(string(r))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// every holds all revisions, oldest first.
var every = []mcp.Revision{r1, r2, r3, r4, mcp.Revision20260728}

// decodeAny decodes JSON and keeps numbers as they are written.
func decodeAny(t *testing.T, raw []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

func secret(b byte) []byte { return bytes.Repeat([]byte{b}, 16) }

func keys(t *testing.T, secrets ...[]byte) *mcp.Keys {
	t.Helper()
	k, err := mcp.NewKeys(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeysNeedSecrets(t *testing.T) {
	for _, tt := range []struct {
		secrets [][]byte
		want    string
	}{
		{nil, "at least one secret"}, {[][]byte{{}}, "secret 1 has 0 bytes"}, {[][]byte{bytes.Repeat([]byte("x"), 15)}, "secret 1 has 15 bytes"},
		{[][]byte{secret(1), []byte("short")}, "secret 2 has 5 bytes"}, {[][]byte{secret(1), nil}, "secret 2 has 0 bytes"},
	} {
		if k, err := mcp.NewKeys(tt.secrets...); err == nil || k != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%d secrets: %v, want %q", len(tt.secrets), err, tt.want)
		}
	}
}

func TestKeysRotate(t *testing.T) {
	a, b := keys(t, secret(1)), keys(t, secret(2))
	both, turned := keys(t, secret(1), secret(2)), keys(t, secret(2), secret(1))
	for _, tt := range []struct {
		name        string
		seals, open *mcp.Keys
		ok          bool
	}{
		{"the same", a, a, true}, {"a replica with the same secret", a, keys(t, secret(1)), true}, {"another secret", a, b, false},
		{"the new one was added last", a, both, true}, {"both seal with the first", both, a, true}, {"and not with the second", both, b, false},
		{"moved to the front", turned, b, true}, {"the old one still opens", a, turned, true}, {"the old one is dropped", a, b, false}, {"old replicas open the new", turned, both, true},
		{"random", new(mcp.Keys), new(mcp.Keys), false},
	} {
		sealed := tt.seals.For("state").Seal([]byte("plain"), []byte("bound"))
		plain, err := tt.open.For("state").Open(sealed, []byte("bound"))
		if tt.ok && (err != nil || string(plain) != "plain") || !tt.ok && err == nil {
			t.Errorf("%s: %q, %v", tt.name, plain, err)
		}
	}
}

func TestKeysBind(t *testing.T) {
	k := new(mcp.Keys)
	state := k.For("state")
	sealed := state.Seal([]byte("plain"), []byte("bound"))
	for name, open := range map[string]func() ([]byte, error){
		"another purpose":    func() ([]byte, error) { return k.For("cursor").Open(sealed, []byte("bound")) },
		"a like purpose":     func() ([]byte, error) { return k.For("state ").Open(sealed, []byte("bound")) },
		"bound to other":     func() ([]byte, error) { return state.Open(sealed, []byte("Bound")) },
		"bound to nothing":   func() ([]byte, error) { return state.Open(sealed, nil) },
		"empty":              func() ([]byte, error) { return state.Open("", []byte("bound")) },
		"padded":             func() ([]byte, error) { return state.Open(sealed+"=", []byte("bound")) },
		"longer":             func() ([]byte, error) { return state.Open(sealed+"AAAA", []byte("bound")) },
		"with a line's end":  func() ([]byte, error) { return state.Open(sealed+"\n", []byte("bound")) },
		"with a line's ends": func() ([]byte, error) { return state.Open("\r\n"+sealed, []byte("bound")) },
		"not base64":         func() ([]byte, error) { return state.Open("%%%", []byte("bound")) },
		"standard base64":    func() ([]byte, error) { return state.Open("//++"+sealed, []byte("bound")) },
	} {
		if plain, err := open(); err == nil || plain != nil {
			t.Errorf("%s: %q, %v", name, plain, err)
		}
	}
	for i := range sealed { // every changed or missing character is noticed
		for _, c := range []byte{'A', 'B', '_'} {
			changed := []byte(sealed)
			if changed[i] == c {
				continue
			}
			changed[i] = c
			if plain, err := state.Open(string(changed), []byte("bound")); err == nil {
				t.Fatalf("character %d changed to %c opens as %q", i, c, plain)
			}
		}
		if _, err := state.Open(sealed[:i], []byte("bound")); err == nil {
			t.Fatalf("the first %d characters open", i)
		}
	}
}

func TestKeysSealsAreTextAndDiffer(t *testing.T) {
	s := new(mcp.Keys).For("state")
	seen := map[string]bool{}
	for _, plain := range []string{"", "a", strings.Repeat("x", 10_000), "\x00\xff"} {
		for range 3 {
			sealed := s.Seal([]byte(plain), nil)
			if seen[sealed] || len(plain) > 100 && strings.Contains(sealed, plain) || strings.Trim(sealed, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
				t.Errorf("%q is sealed as %q", plain, sealed)
			}
			seen[sealed] = true
			if got, err := s.Open(sealed, nil); err != nil || string(got) != plain {
				t.Errorf("%q opens as %q, %v", plain, got, err)
			}
		}
	}
}

func TestKeysDoNotChangeWithTheSecret(t *testing.T) {
	mine := secret(1)
	k := keys(t, mine)
	sealed := k.For("state").Seal([]byte("plain"), nil)
	clear(mine) // as a careful caller does
	if _, err := k.For("state").Open(sealed, nil); err != nil {
		t.Error(err)
	}
}

func TestCapabilitiesOfARequest(t *testing.T) {
	for raw, want := range map[string]string{``: `{}`, `{}`: `{}`, `{"roots":{"listChanged":true}}`: `{"roots":{"listChanged":true}}`, `{"unknown":{}}`: `{}`, `{"sampling":{"tools":{"x":1}}}`: `{"sampling":{"tools":{}}}`} {
		c := (&mcp.Request{ClientCapabilities: []byte(raw)}).Capabilities()
		if got, err := mcp.Encode(c); err != nil || string(got) != want {
			t.Errorf("%s is read as %s, %v", raw, got, err)
		}
	}
}

func TestLoggingLevels(t *testing.T) {
	for i, name := range []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"} {
		if got := mcp.LoggingLevel(name).Severity(); got != i || string(mcpwire.LoggingLevels()[i]) != name {
			t.Errorf("%s has severity %d", name, got)
		}
		for _, r := range every {
			if err := validator(t, r).Definition("LoggingLevel", []byte(`"`+name+`"`)); err != nil {
				t.Error(err)
			}
		}
	}
	for _, name := range []string{"", "Debug", "trace", "warn", "fatal", " info"} {
		if got := mcp.LoggingLevel(name).Severity(); got != -1 {
			t.Errorf("%q has severity %d", name, got)
		}
	}
}

func TestRevisions(t *testing.T) {
	if got := mcp.Revisions(); !slices.IsSortedFunc(got, func(a, b mcp.Revision) int { return strings.Compare(string(b), string(a)) }) || got[0] != mcp.LatestRevision || got[1] != mcp.LatestLegacyRevision || len(got) != 5 {
		t.Errorf("%v", got)
	}
	for _, tt := range []struct {
		r                      mcp.Revision
		known, modern, batches bool
	}{
		{r1, true, false, false}, {r2, true, false, true}, {r3, true, false, false}, {r4, true, false, false}, {mcp.Revision20260728, true, true, false},
		{"", false, false, false}, {"2027-01-01", false, true, false}, {"2025-03-27", false, false, false}, {"1.0.0", false, false, false},
	} {
		if tt.r.Known() != tt.known || tt.r.Modern() != tt.modern || mcpwire.AllowsBatches(tt.r) != tt.batches {
			t.Errorf("%q: known %v, modern %v, batches %v", tt.r, tt.r.Known(), tt.r.Modern(), mcpwire.AllowsBatches(tt.r))
		}
	}
}

func TestErrors(t *testing.T) {
	if got := mcp.ResourceNotFound("x://é\""); got.Code != -32602 || string(got.Data) != `{"uri":"x://é\""}` {
		t.Errorf("%v, data %s", got, got.Data)
	}
	if got := (&mcp.CapabilityError{Required: mcp.ClientCapabilities{Roots: &mcp.RootsCapability{}}}).Error(); !strings.Contains(got, "(roots)") {
		t.Errorf("got %q", got)
	}
}

func TestChain(t *testing.T) {
	var order []string
	mark := func(name string) mcp.Middleware {
		return func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
				order = append(order, name)
				return next.ServeMCP(ctx, req)
			})
		}
	}
	h := mcp.Chain(mcp.HandlerFunc(func(context.Context, *mcp.Request) (*mcp.Result, error) {
		order = append(order, "handler")
		return &mcp.Result{}, nil
	}), mark("first"), mark("second"))
	if _, err := h.ServeMCP(t.Context(), &mcp.Request{}); err != nil || strings.Join(order, " ") != "first second handler" {
		t.Errorf("%v, %v", order, err)
	}
}
