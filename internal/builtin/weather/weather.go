// Package weather is an MCP server for the weather in the United States: alerts and forecasts of
// the National Weather Service, from its API at api.weather.gov, which needs no key.
//
// It has the tools get_alerts and get_forecast. Both return text for people and models, and the
// same data as structured content.
package weather

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
	"github.com/dowel-mcp/dowel/server"
)

// Version is the version that the server reports.
const Version = "1.0.0"

// Defaults of [Options].
const (
	DefaultBaseURL   = "https://api.weather.gov"
	DefaultUserAgent = "dowel-weather/" + Version + " (+https://github.com/dowel-mcp/dowel)"
	DefaultTimeout   = 15 * time.Second
)

// Options configure a [Server]. The zero value is ready.
type Options struct {
	// BaseURL is the URL of the API; the default is [DefaultBaseURL]. Requests go only to its host:
	// links to api.weather.gov, as in the answers of a mirror, are followed at this host too.
	BaseURL string
	// UserAgent identifies the user of the API by a name and a contact address, which the API
	// requires. The default is [DefaultUserAgent].
	UserAgent string
	// Timeout bounds each request to the API; a forecast takes two. The default is
	// [DefaultTimeout].
	Timeout time.Duration
	// Transport carries the requests; the default is [http.DefaultTransport].
	Transport http.RoundTripper
	// Server holds the options of [server.New].
	Server server.Options
}

// Server is a [server.Server] that calls the weather service.
type Server struct {
	*server.Server
	api *api
}

// New returns a server. It fails if BaseURL is not an http or https URL, or contains credentials.
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
	hints := &mcp.ToolAnnotations{ReadOnlyHint: new(true), OpenWorldHint: new(true)}
	server.Tool(s.Server, "get_alerts", "Returns the active weather alerts for a US state or territory, from the National Weather Service.", s.getAlerts,
		server.ToolOptions{Title: "Weather alerts", Annotations: hints, OutputSchema: schemaOf[Alerts]()})
	server.Tool(s.Server, "get_forecast", "Returns the weather forecast of the coming week for a place in the US, from the National Weather Service.", s.getForecast,
		server.ToolOptions{Title: "Weather forecast", Annotations: hints, OutputSchema: schemaOf[Forecast]()})
	return s, nil
}

// Close ends all subscriptions and closes idle connections to the API.
func (s *Server) Close() error {
	s.api.client.CloseIdleConnections()
	return s.Server.Close()
}

// textAndStructured returns a result with text for models and structured content for programs.
func textAndStructured(text string, structured any) (*mcp.CallToolResult, error) {
	raw, err := schema.Encode(structured)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(text)}, StructuredContent: raw}, nil
}

// schemaOf returns the output schema of a tool that returns a T through textAndStructured.
func schemaOf[T any]() json.RawMessage {
	s, err := schema.ForOutput[T]()
	if err != nil {
		panic(err) // only a mistake in the type T can cause this
	}
	return s.JSON()
}
