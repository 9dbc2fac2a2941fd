package weather

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// dial returns a client of a server that asks the fake API.
func dial(t *testing.T, o Options, revision mcp.Revision) *client.Client {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(t.Context(), s, &client.Options{Wire: client.Wire{Revision: revision, Tap: mcptest.ClientTap(t)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		s.Close()
	})
	return c
}

type args map[string]any

func golden(t *testing.T, file string) string {
	t.Helper()
	want, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(want)
}

func TestForecast(t *testing.T) {
	for _, revision := range mcp.Revisions() {
		t.Run(string(revision), func(t *testing.T) {
			api := newFakeAPI(t)
			c := dial(t, Options{BaseURL: api.URL}, revision)
			var steps []string
			result, err := client.Call[*mcp.CallToolResult](t.Context(), c, "get_forecast", args{"latitude": 38.889399, "longitude": -77.03520001},
				client.CallOptions{OnProgress: func(p mcp.ProgressParams) { steps = append(steps, p.Message) }})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := result.Content[0].Text, golden(t, "forecast.txt"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if want := []string{"/points/38.8894,-77.0352", "/gridpoints/LWX/97,71/forecast"}; !slices.Equal(api.requests(), want) {
				t.Errorf("asked for %q, want %q", api.requests(), want)
			}
			if want := []string{"looking up 38.8894,-77.0352", "fetching the forecast", "done"}; revision > mcp.Revision20241105 && !slices.Equal(steps, want) {
				t.Errorf("progress %q, want %q", steps, want)
			}
			if revision < mcp.Revision20250618 {
				return // this revision has no structured content
			}
			var f Forecast
			if err := json.Unmarshal(result.StructuredContent, &f); err != nil {
				t.Fatal(err)
			}
			today, tonight := f.Periods[0], f.Periods[1]
			if f.Place != "Washington, DC" || f.TimeZone != "America/New_York" || !today.Daytime || today.Temperature != 91 ||
				*today.Precipitation != 40 || tonight.Precipitation != nil || tonight.Wind != "5 mph W" {
				t.Errorf("got %+v", f)
			}
		})
	}
}

func TestForecastFollowsRedirects(t *testing.T) {
	api := newFakeAPI(t)
	c := dial(t, Options{BaseURL: api.URL + "/"}, "")
	f, err := client.Call[Forecast](t.Context(), c, "get_forecast", args{"latitude": 38.89, "longitude": -77.04})
	if err != nil || len(f.Periods) != 2 {
		t.Errorf("got %+v, %v", f, err)
	}
}

func TestAlerts(t *testing.T) {
	api := newFakeAPI(t)
	c := dial(t, Options{BaseURL: api.URL}, "")
	text, err := client.Call[string](t.Context(), c, "get_alerts", args{"state": "ca"})
	if want := golden(t, "alerts.txt"); err != nil || text != want {
		t.Errorf("got\n%s\n%v, want\n%s", text, err, want)
	}
	two, err := client.Call[Alerts](t.Context(), c, "get_alerts", args{"state": "CA", "limit": 2})
	if err != nil {
		t.Fatal(err)
	}
	if two.State != "CA" || two.Total != 3 || len(two.Alerts) != 2 || two.Alerts[0].Severity != "Extreme" || two.Alerts[1].Ends != "2026-08-04T03:00:00-07:00" {
		t.Errorf("got %+v", two)
	}
	if text := two.formatSummary(); !strings.HasPrefix(text, "3 active alerts for CA, the 2 most severe of them:") {
		t.Errorf("got %q", text)
	}
	text, err = client.Call[string](t.Context(), c, "get_alerts", args{"state": "VT"})
	if err != nil || text != "No active alerts for VT." {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestErrors(t *testing.T) {
	api := newFakeAPI(t)
	at := func(n float64) args { return args{"latitude": n, "longitude": n} }
	for name, test := range map[string]struct {
		tool string
		in   args
		want []string // parts of the text
	}{
		"outside the US":    {"get_forecast", args{"latitude": 51.5, "longitude": -0.12}, []string{"does not know the place 51.5,-0.12", "Unable to provide data", "only the US and its territories"}},
		"redirected away":   {"get_forecast", at(1), []string{"redirect away from the weather service, to elsewhere.example"}},
		"redirected round":  {"get_forecast", at(2), []string{"more than 5 redirects"}},
		"linked away":       {"get_forecast", at(3), []string{"links to another host, elsewhere.example"}},
		"no forecast":       {"get_forecast", at(4), []string{"no forecast for 4,4"}},
		"no absolute link":  {"get_forecast", at(5), []string{"no valid link"}},
		"half an answer":    {"get_forecast", at(6), []string{"cannot be read", "try again"}},
		"a huge answer":     {"get_forecast", at(7), []string{"larger than 8 MiB"}},
		"unavailable":       {"get_forecast", at(8), []string{"HTTP 503", "try again in a minute", "has expired."}},
		"silence":           {"get_forecast", at(9), []string{"did not answer within 300ms", "try again"}},
		"too often":         {"get_forecast", at(10), []string{"HTTP 429", "wait a minute"}},
		"cut short":         {"get_forecast", at(11), []string{"cannot be reached: unexpected EOF"}},
		"a state of no one": {"get_alerts", args{"state": "ZZ"}, []string{"refused the request for alerts in ZZ (HTTP 400)"}},
		"no state":          {"get_alerts", args{}, []string{"invalid arguments"}},
		"a long state":      {"get_alerts", args{"state": "Ohio"}, []string{"invalid arguments"}},
		"injection":         {"get_alerts", args{"state": "&a"}, []string{"invalid arguments"}},
		"no such latitude":  {"get_forecast", args{"latitude": 91, "longitude": 0}, []string{"invalid arguments"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{BaseURL: api.URL}
			if name == "silence" {
				o.Timeout = 300 * time.Millisecond
			}
			c := dial(t, o, "")
			_, err := client.Call[string](t.Context(), c, test.tool, test.in)
			failed, ok := errors.AsType[*client.ToolError](err)
			if !ok {
				t.Fatalf("got %v, want a tool error", err)
			}
			for _, part := range test.want {
				if !strings.Contains(failed.Result.Content[0].Text, part) {
					t.Errorf("got %q, want a part %q", failed.Result.Content[0].Text, part)
				}
			}
		})
	}
}

func TestNobodyThere(t *testing.T) {
	api := newFakeAPI(t)
	api.Close()
	c := dial(t, Options{BaseURL: api.URL}, "")
	_, err := client.Call[string](t.Context(), c, "get_alerts", args{"state": "CA"})
	if err == nil || !strings.Contains(err.Error(), "cannot be reached") || strings.Contains(err.Error(), "alerts/active") {
		t.Errorf("got %v", err)
	}
}

func TestCancelReachesTheAPI(t *testing.T) {
	api := newFakeAPI(t)
	c := dial(t, Options{BaseURL: api.URL}, "")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := client.Call[string](ctx, c, "get_forecast", args{"latitude": 9, "longitude": 9},
		client.CallOptions{OnProgress: func(mcp.ProgressParams) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestCoordinates(t *testing.T) {
	for degrees, want := range map[float64]string{
		0: "0", -0.00001: "0", 38.8894: "38.8894", 38.889_449_9: "38.8894", -77.03525: "-77.0353", 38.9: "38.9", 40: "40", -120.1000: "-120.1", 100: "100",
	} {
		if got := formatDegrees(degrees); got != want {
			t.Errorf("coordinates(%v) = %q, want %q", degrees, got, want)
		}
	}
}

func TestBaseURLs(t *testing.T) {
	for _, base := range []string{"api.weather.gov", "ftp://api.weather.gov", "https://", "https://user:secret@api.weather.gov", "http://%zz"} {
		if _, err := New(Options{BaseURL: base}); err == nil || !strings.Contains(err.Error(), "is not the URL of an API") {
			t.Errorf("%s: got %v", base, err)
		}
	}
}

func TestAnnotations(t *testing.T) {
	c := dial(t, Options{}, "")
	tools, err := client.All(c.Tools(t.Context()))
	if err != nil || len(tools) != 2 {
		t.Fatalf("got %v, %v", tools, err)
	}
	for _, tool := range tools {
		if !*tool.Annotations.ReadOnlyHint || !*tool.Annotations.OpenWorldHint || tool.OutputSchema == nil || tool.Description == "" {
			t.Errorf("%s: %+v", tool.Name, tool)
		}
	}
}
