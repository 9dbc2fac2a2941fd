package weather_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/builtin/weather"
)

func Example() {
	ctx := context.Background()
	// A stand-in for https://api.weather.gov, where BaseURL points by default.
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, "testdata/alerts_active_"+r.URL.Query().Get("area")+".json")
	}))
	defer api.Close()

	s, err := weather.New(weather.Options{BaseURL: api.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	c, err := client.Dial(ctx, s, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	alerts, err := client.Call[weather.Alerts](ctx, c, "get_alerts", map[string]any{"state": "CA", "limit": 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(alerts.Total, alerts.Alerts[0].Event)
	// Output: 3 Extreme Heat Warning
}
