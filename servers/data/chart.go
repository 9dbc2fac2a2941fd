package data

import (
	"context"
	"errors"
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// maxPoints bounds the rows of a chart.
const maxPoints = 500

type chartIn struct {
	SQL    string            `json:"sql" doc:"A SELECT of two columns: labels, and numbers" minLength:"1" maxLength:"65536"`
	Tables map[string]string `json:"tables" doc:"The path of each table's file, by the name that the SQL uses"`
	Kind   string            `json:"kind,omitzero" doc:"How the numbers are drawn" enum:"bar,line" default:"bar"`
	Title  string            `json:"title,omitzero" doc:"A line above the chart" maxLength:"200"`
}

// chartQuery returns the chart as an embedded resource. Its URI names the chart within the
// conversation; it cannot be read again.
func (s *Server) chartQuery(ctx context.Context, in chartIn) (content mcp.Content, err error) {
	err = s.runJob(ctx, func(ctx context.Context) error {
		result, err := s.runQuery(ctx, queryIn{SQL: in.SQL, Tables: in.Tables, Limit: maxPoints})
		if err != nil {
			return err
		}
		points, err := readPoints(result)
		if err != nil {
			return err
		}
		svg := drawChart(in.Kind, in.Title, points)
		content = mcp.Embed(mcp.ResourceContents{URI: "data:///chart.svg", MIMEType: "image/svg+xml", Text: svg})
		return nil
	})
	return content, err
}

// A point is a row of a chart.
type point struct {
	label string
	y     float64
}

func readPoints(result Result) (points []point, err error) {
	if len(result.Columns) < 2 {
		return nil, errors.New("the result has one column: want labels, and numbers")
	}
	for _, row := range result.Rows {
		var y float64
		switch n := row[1].(type) {
		case int64:
			y = float64(n)
		case float64:
			y = n
		case nil:
			continue
		default:
			return nil, fmt.Errorf("the second column has the value %q: want numbers", cutText(fmt.Sprint(n), shownText))
		}
		label := ""
		if row[0] != nil {
			label = cutText(fmt.Sprint(row[0]), 40)
		}
		points = append(points, point{label, y})
	}
	if len(points) == 0 {
		return nil, errors.New("the result has no numbers")
	}
	return points, nil
}

// Sizes of a chart, in pixels.
const (
	chartWidth, chartHeight = 800, 450
	plotLeft, plotRight     = 90, 780
	plotTop, plotBottom     = 50, 380
	maxLabels               = 20
)

// drawChart returns an SVG image without scripts, styles or links.
func drawChart(kind, title string, points []point) string {
	low, high := 0.0, 0.0
	for _, p := range points {
		low, high = min(low, p.y), max(high, p.y)
	}
	if low == high {
		high = low + 1
	}
	height := func(y float64) float64 { // halves avoid an overflow
		return plotBottom - (plotBottom-plotTop)*((y/2-low/2)/(high/2-low/2))
	}
	step := float64(plotRight-plotLeft) / float64(len(points))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="#333">`, chartWidth, chartHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`, chartWidth, chartHeight)
	fmt.Fprintf(&b, `<text x="%d" y="28" font-size="18">%s</text>`, plotLeft, escapeText(title))
	const lines = 4
	for i := range lines + 1 {
		y := low + (high/lines-low/lines)*float64(i)
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.6g</text>`,
			plotLeft, height(y), plotRight, plotLeft-8, height(y)+4, y)
	}
	every := int(math.Ceil(float64(len(points)) / maxLabels))
	var line []string
	for i, p := range points {
		x := plotLeft + step*(float64(i)+0.5)
		if kind == "line" {
			line = append(line, fmt.Sprintf("%.1f,%.1f", x, height(p.y)))
		} else {
			top, bottom := height(max(p.y, 0)), height(min(p.y, 0))
			fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#4269d0"/>`, x-step*0.4, top, step*0.8, bottom-top)
		}
		if i%every == 0 {
			fmt.Fprintf(&b, `<text transform="translate(%.1f %d) rotate(30)">%s</text>`, x, plotBottom+14, escapeText(p.label))
		}
	}
	if len(line) > 0 {
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="#4269d0" stroke-width="2"/>`, strings.Join(line, " "))
	}
	b.WriteString("</svg>")
	return b.String()
}

// escapeText makes text safe within an element. XML has no control characters.
func escapeText(text string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xFFFE || r == 0xFFFF {
			return ' '
		}
		return r
	}, text))
}
