package weather

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

type forecastIn struct {
	Latitude  float64 `json:"latitude" doc:"Degrees north, such as 38.8894" minimum:"-90" maximum:"90"`
	Longitude float64 `json:"longitude" doc:"Degrees east, negative in the Americas, such as -77.0352" minimum:"-180" maximum:"180"`
}

// Forecast is the result of get_forecast.
type Forecast struct {
	Place     string   `json:"place,omitzero" doc:"The nearest city"`
	TimeZone  string   `json:"timeZone,omitzero" doc:"Of the place, such as America/New_York"`
	Generated string   `json:"generated,omitzero" doc:"When the forecast was made (RFC 3339)"`
	Periods   []Period `json:"periods" doc:"Days and nights, from now on"`
}

// Period is a day or night of a [Forecast].
type Period struct {
	Name            string   `json:"name" doc:"Such as Tonight or Monday"`
	Start           string   `json:"start" doc:"RFC 3339"`
	End             string   `json:"end" doc:"RFC 3339"`
	Daytime         bool     `json:"daytime"`
	Temperature     float64  `json:"temperature" doc:"The high of a day, the low of a night"`
	TemperatureUnit string   `json:"temperatureUnit" doc:"F or C"`
	Precipitation   *float64 `json:"precipitation,omitempty" doc:"Probability in percent"`
	Wind            string   `json:"wind,omitzero" doc:"The speed, and the direction from which it blows"`
	Short           string   `json:"short" doc:"The forecast in a few words"`
	Detailed        string   `json:"detailed,omitzero" doc:"The forecast in full sentences"`
}

// pointAnswer is the answer of /points/{latitude},{longitude}: the members that this package uses.
type pointAnswer struct {
	Properties struct {
		Forecast         string `json:"forecast"`
		TimeZone         string `json:"timeZone"`
		RelativeLocation struct {
			Properties struct {
				City  string `json:"city"`
				State string `json:"state"`
			} `json:"properties"`
		} `json:"relativeLocation"`
	} `json:"properties"`
}

func (p *pointAnswer) placeName() string {
	city := p.Properties.RelativeLocation.Properties
	return strings.Trim(city.City+", "+city.State, ", ")
}

// forecastAnswer is the answer for the forecast of a point.
type forecastAnswer struct {
	Properties struct {
		GeneratedAt string         `json:"generatedAt"`
		Periods     []periodAnswer `json:"periods"`
	} `json:"properties"`
}

type periodAnswer struct {
	Name            string  `json:"name"`
	StartTime       string  `json:"startTime"`
	EndTime         string  `json:"endTime"`
	IsDaytime       bool    `json:"isDaytime"`
	Temperature     float64 `json:"temperature"`
	TemperatureUnit string  `json:"temperatureUnit"`
	Probability     struct {
		Value *float64 `json:"value"`
	} `json:"probabilityOfPrecipitation"`
	WindSpeed        string `json:"windSpeed"`
	WindDirection    string `json:"windDirection"`
	ShortForecast    string `json:"shortForecast"`
	DetailedForecast string `json:"detailedForecast"`
}

// getForecast fetches the grid point of a place, and then the forecast for it.
func (s *Server) getForecast(ctx context.Context, in forecastIn) (*mcp.CallToolResult, error) {
	at := formatDegrees(in.Latitude) + "," + formatDegrees(in.Longitude)
	server.Progress(ctx, 0, 2, "looking up "+at)
	var point pointAnswer
	if err := s.api.fetchJSON(ctx, s.api.base.JoinPath("points", at), "the place "+at, &point); err != nil {
		return nil, outsideUS(err)
	}
	if point.Properties.Forecast == "" {
		return nil, fmt.Errorf("the weather service has no forecast for %s: want a place on land in the US or its territories", at)
	}
	link, err := s.api.resolveLink(point.Properties.Forecast)
	if err != nil {
		return nil, err
	}
	server.Progress(ctx, 1, 2, "fetching the forecast")
	var answer forecastAnswer
	if err := s.api.fetchJSON(ctx, link, "the forecast for "+at, &answer); err != nil {
		return nil, err
	}
	server.Progress(ctx, 2, 2, "done")
	f := newForecast(&point, &answer)
	if len(f.Periods) == 0 {
		return nil, fmt.Errorf("the weather service's forecast for %s is empty: try again in a few minutes", at)
	}
	return textAndStructured(f.formatSummary(at), f)
}

// formatDegrees formats degrees with at most 4 decimals and without trailing zeros. The API
// redirects requests in other formats.
func formatDegrees(degrees float64) string {
	text := strings.TrimRight(strconv.FormatFloat(degrees, 'f', 4, 64), "0")
	if text = strings.TrimSuffix(text, "."); text == "-0" {
		return "0"
	}
	return text
}

// outsideUS adds an explanation to a statusError with status 404.
func outsideUS(err error) error {
	if e, ok := errors.AsType[*statusError](err); ok && e.status == http.StatusNotFound {
		return fmt.Errorf("%w It covers only the US and its territories; check that latitude and longitude are not swapped, and that longitudes in the Americas are negative", err)
	}
	return err
}

func newForecast(point *pointAnswer, answer *forecastAnswer) Forecast {
	f := Forecast{Place: point.placeName(), TimeZone: point.Properties.TimeZone, Generated: answer.Properties.GeneratedAt}
	for _, p := range answer.Properties.Periods {
		f.Periods = append(f.Periods, Period{
			Name: p.Name, Start: p.StartTime, End: p.EndTime, Daytime: p.IsDaytime,
			Temperature: p.Temperature, TemperatureUnit: p.TemperatureUnit, Precipitation: p.Probability.Value,
			Wind: strings.TrimSpace(p.WindSpeed + " " + p.WindDirection), Short: p.ShortForecast, Detailed: p.DetailedForecast,
		})
	}
	return f
}

func (f *Forecast) formatSummary(at string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Forecast for %s", at)
	if f.Place != "" {
		fmt.Fprintf(&b, " (near %s)", f.Place)
	}
	if made, err := time.Parse(time.RFC3339, f.Generated); err == nil {
		fmt.Fprintf(&b, ", made %s", made.UTC().Format("2006-01-02 15:04 UTC"))
	}
	b.WriteString("\n")
	for i := range f.Periods {
		f.Periods[i].writeText(&b)
	}
	return b.String()
}

func (p *Period) writeText(b *strings.Builder) {
	extreme := "low"
	if p.Daytime {
		extreme = "high"
	}
	fmt.Fprintf(b, "\n%s: %s, %s %v°%s", p.Name, p.Short, extreme, p.Temperature, p.TemperatureUnit)
	if p.Wind != "" {
		fmt.Fprintf(b, ", wind %s", p.Wind)
	}
	if p.Precipitation != nil {
		fmt.Fprintf(b, ", precipitation %v%%", *p.Precipitation)
	}
	b.WriteString("\n")
	if p.Detailed != "" {
		fmt.Fprintf(b, "  %s\n", p.Detailed)
	}
}
