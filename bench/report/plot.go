package report

import (
	"bytes"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/bench/peers"
	"github.com/dowel-mcp/dowel/bench/rounds"
	"github.com/dowel-mcp/dowel/bench/work"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// looks are the marks of the contestants. The floor is drawn as a line at 1.
var looks = []struct {
	name  string
	shape draw.GlyphDrawer
	color.Color
}{
	{"encoding/json", draw.CircleGlyph{}, color.Gray{0x90}},
	{"dowel", draw.CircleGlyph{}, color.RGBA{0xb0, 0x4a, 0x10, 0xff}},
	{"go-sdk", draw.BoxGlyph{}, color.RGBA{0x1f, 0x5f, 0x9f, 0xff}},
	{"mcp-go", draw.PyramidGlyph{}, color.RGBA{0x3f, 0x8f, 0x4f, 0xff}},
}

// plotted is a row of the plot.
type plotted struct {
	item   string // also the title of the row
	base   string
	figure work.Figure
}

// Plot writes a plot of the times to a file. The extension of its name selects the format, such as
// .svg. Each time in the tables becomes a row, with a mark for each contestant at its factor to the
// floor.
func Plot(file string, run rounds.Run, items []work.Item) error {
	f := figuresOf(run)
	rows := rowsOf(items)
	p := plot.New()
	for _, style := range []*draw.TextStyle{&p.Title.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font.Variant = "Sans"
	}
	p.Title.Text = "Times, × the floor (logarithmic; less is better)"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(ticks)
	p.X.Min, p.X.Max = 0.5, 1000
	p.Y.Min, p.Y.Max = -0.5, float64(len(rows))-0.5
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{0xe0}, color.Gray{0xe0}
	p.Add(grid)
	floor, err := one(len(rows))
	if err != nil {
		return err
	}
	p.Add(floor)
	p.Legend.Add("floor", floor)
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row.item
	}
	p.NominalY(names...)
	for _, look := range looks {
		marks, err := plotter.NewScatter(f.marks(rows, look.name))
		if err != nil {
			return err
		}
		marks.GlyphStyle = draw.GlyphStyle{Color: look.Color, Radius: vg.Points(3.5), Shape: look.shape}
		p.Add(marks)
		p.Legend.Add(look.name, marks)
	}
	p.Legend.Top, p.Legend.Padding = true, vg.Points(3)
	return save(p, file, vg.Points(float64(len(rows)*rowHeight+90)))
}

const rowHeight, width, margin = 15, 760, 8 // points

// save draws the plot on white, with a margin.
func save(p *plot.Plot, file string, height vg.Length) error {
	c, err := draw.NewFormattedCanvas(vg.Points(width), height, strings.TrimPrefix(filepath.Ext(file), "."))
	if err != nil {
		return err
	}
	all := draw.New(c)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	p.Draw(draw.Crop(all, margin, -margin, margin, -margin))
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// one returns the line at 1 for the floor.
func one(rows int) (*plotter.Line, error) {
	line, err := plotter.NewLine(plotter.XYs{{X: 1, Y: -0.5}, {X: 1, Y: float64(rows) - 0.5}})
	if err == nil {
		line.Color = color.Gray{0x70}
	}
	return line, err
}

var ticks = []plot.Tick{{Value: 0.5, Label: "½"}, {Value: 1, Label: "1"}, {Value: 2, Label: "2"}, {Value: 5, Label: "5"}, {Value: 10, Label: "10"},
	{Value: 20, Label: "20"}, {Value: 50, Label: "50"}, {Value: 100, Label: "100"}, {Value: 200, Label: "200"}, {Value: 500, Label: "500"}, {Value: 1000, Label: "1000"}}

// rowsOf returns the rows from the bottom to the top.
func rowsOf(items []work.Item) (rows []plotted) {
	for _, item := range items {
		for _, row := range item.Rows {
			if len(item.Rivals()) > 0 && item.Base() == peers.All[0].Name() && (row.Figure == work.Time || row.Figure == work.CPU) {
				rows = append(rows, plotted{item.Name, item.Base(), row.Figure})
			}
		}
	}
	slices.Reverse(rows)
	return rows
}

// marks returns the positions of a contestant's marks, without rows that it was not measured in.
func (f figures) marks(rows []plotted, contestant string) (marks plotter.XYs) {
	for i, row := range rows {
		if ratios := f.ratios(row.item, contestant, row.base, row.figure); len(ratios) > 0 {
			marks = append(marks, plotter.XY{X: median(ratios), Y: float64(i)})
		}
	}
	return marks
}
