// Package weather is an MCP server of the weather in the United States: alerts and forecasts of the National Weather Service,
// from its API at api.weather.gov, which needs no key.
//
// It has the tools get_alerts and get_forecast. Both return text for people and models, and the same as structured content.
package weather

import (
	"net/http"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// Version is that of the server.
const Version = "1.0.0"

// Defaults of [Options].
const (
	DefaultBaseURL   = "https://api.weather.gov"
	DefaultUserAgent = "dowel-weather/" + Version + " (+https://github.com/dowel-mcp/dowel)"
	DefaultTimeout   = 15 * time.Second
)

// Options configure a [Server]. The zero value is ready.
type Options struct {
	// BaseURL is where the API is, default [DefaultBaseURL]. Links in answers are followed to this host only; those to
	// api.weather.gov, which a mirror passes on, are followed here.
	BaseURL string
	// UserAgent is what the API asks everybody for: a name and a way to get in touch. Default [DefaultUserAgent].
	UserAgent string
	// Timeout bounds each request to the API, of which a forecast takes two. Default [DefaultTimeout].
	Timeout time.Duration
	// Transport carries the requests, default [http.DefaultTransport].
	Transport http.RoundTripper
	// Server holds the options of [server.New].
	Server server.Options
}

// Server is a [server.Server] that asks the weather service.
type Server struct {
	*server.Server
	api *api
}

// New returns a server. It is an error if BaseURL is not the URL of an API.
func New(opts ...Options) (*Server, error) {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	api, err := newAPI(o)
	if err != nil {
		return nil, err
	}
	s := &Server{Server: server.New("weather", Version, &o.Server), api: api}
	asks := &mcp.ToolAnnotations{ReadOnlyHint: new(true), OpenWorldHint: new(true)}
	server.Tool(s.Server, "get_alerts", "Active weather alerts for a US state or territory, from the National Weather Service.", s.alerts,
		server.ToolOptions{Title: "Weather alerts", Annotations: asks, OutputSchema: schemaOf[Alerts]()})
	server.Tool(s.Server, "get_forecast", "Weather forecast of the coming week for a place in the US, from the National Weather Service.", s.forecast,
		server.ToolOptions{Title: "Weather forecast", Annotations: asks, OutputSchema: schemaOf[Forecast]()})
	return s, nil
}

// Close ends all subscriptions and closes idle connections to the API.
func (s *Server) Close() error {
	s.api.client.CloseIdleConnections()
	return s.Server.Close()
}
