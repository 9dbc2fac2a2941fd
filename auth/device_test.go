package auth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// A user logs in on another device. The client polls as often as the server allows.
func TestDeviceFlow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		quirks []string
		answer string // of the user: "", approve or deny
		waits  []time.Duration
	}{
		{"approved", nil, "approve", []time.Duration{5 * time.Second}},
		{"slow down", []string{"slow-down"}, "approve", []time.Duration{5 * time.Second, 10 * time.Second}},
		{"without PKCE, which only a code needs", []string{"no-challenge-methods"}, "approve", []time.Duration{5 * time.Second}},
		{"denied", nil, "deny", []time.Duration{5 * time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			quirks := tt.quirks
			if tt.answer == "deny" {
				quirks = append(quirks, "deny")
			}
			shown := 0
			s := newSetup(t, &authtest.Options{Quirks: quirks}, Options{
				Login: LoginFunc(func(ctx context.Context, r LoginRequest) (url.Values, error) {
					return nil, r.Device(ctx, func(c DeviceCode) {
						shown++
						if c.Code == "" || !time.Now().Before(c.Expires) {
							t.Errorf("%+v", c)
						}
						resp, err := http.Get(c.FullURL) //nolint:noctx // the user's browser
						if err != nil {
							t.Error(err)
							return
						}
						resp.Body.Close()
					})
				}),
			})
			var waits []time.Duration
			s.wait = func(_ context.Context, d time.Duration) error {
				waits = append(waits, d)
				s.as.Advance(d)
				return nil
			}
			status, err := post(t.Context(), s.Transport, s.rs.URL, "{}")
			if tt.answer == "deny" {
				var needs *NeedsLogin
				if !errors.As(err, &needs) || !refusedAs(err, "access_denied") {
					t.Errorf("%v", err)
				}
			} else if err != nil || status != http.StatusOK {
				t.Fatalf("status %d, %v", status, err)
			}
			if shown != 1 || !slices.Equal(waits, tt.waits) {
				t.Errorf("shown %d times, waits %v, want %v", shown, waits, tt.waits)
			}
			if form := s.as.Requests("device")[0].Form; form.Get("resource") != s.rs.URL || form.Get("client_id") == "" {
				t.Errorf("%v", form)
			}
			s.wantCounts(map[string]int{"authorize": 0, "register": 1})
		})
	}
}
