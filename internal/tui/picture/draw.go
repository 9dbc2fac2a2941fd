package picture

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	"image/draw"
	"image/png"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/kitty"
)

// Area is a part of a terminal for an image.
type Area struct {
	Columns, Rows         int
	CellWidth, CellHeight int // in pixels; 0 means unknown
	Background            color.Color
}

// Sizes of a cell, for terminals that do not tell them. They are small, because an image that is
// too small is better than one that is cut.
const (
	smallCellWidth  = 6
	smallCellHeight = 12
)

// ErrForgotten is the error of an image that is not in memory any more.
var ErrForgotten = errors.New("the image is not in memory any more")

// Draw returns the control sequences that draw the image at the cursor, within an area. Small
// images keep their size.
func (p *Picture) Draw(with Protocol, a Area) (string, error) {
	if len(p.data) == 0 {
		return "", ErrForgotten
	}
	width, height := a.CellWidth, a.CellHeight
	if width <= 0 || height <= 0 {
		width, height = smallCellWidth, smallCellHeight
	}
	switch with {
	case Kitty:
		return p.drawKitty(p.fitCells(a, width, height)), nil
	case ITerm2:
		return p.drawITerm2(p.fitCells(a, width, height)), nil
	case Sixel:
		return p.drawSixel(a.Columns*width, a.Rows*height, a.Background)
	case NoProtocol:
	}
	return "", errors.New("the terminal has no protocol for images")
}

// fitCells returns the size of the image in cells. cellWidth and cellHeight are the size of a cell
// in pixels.
func (p *Picture) fitCells(a Area, cellWidth, cellHeight int) image.Point {
	w, h := fit(p.Width, p.Height, max(a.Columns, 1)*cellWidth, max(a.Rows, 1)*cellHeight)
	return image.Pt(min((w+cellWidth-1)/cellWidth, max(a.Columns, 1)), min((h+cellHeight-1)/cellHeight, max(a.Rows, 1)))
}

// drawKitty returns the image in kitty's protocol. It does not move the cursor.
func (p *Picture) drawKitty(cells image.Point) string {
	return chunkKitty(p.data, "a=T", "f=100", "q=2", "C=1", fmt.Sprintf("c=%d", cells.X), fmt.Sprintf("r=%d", cells.Y))
}

// chunkKitty returns the control sequences of an image. The first sequence has the options, and the
// others only q=2, so that the terminal sends no answer.
func chunkKitty(data []byte, options ...string) string {
	payload := base64.StdEncoding.EncodeToString(data)
	var b strings.Builder
	for payload != "" {
		n := min(len(payload), kitty.MaxChunkSize)
		more := "m=0"
		if n < len(payload) {
			more = "m=1"
		}
		b.WriteString(ansi.KittyGraphics([]byte(payload[:n]), append(options, more)...))
		payload, options = payload[n:], []string{"q=2"}
	}
	return b.String()
}

// drawITerm2 returns the image in iTerm2's protocol.
func (p *Picture) drawITerm2(cells image.Point) string {
	return ansi.ITerm2(fmt.Sprintf("File=inline=1;size=%d;width=%d;height=%d;preserveAspectRatio=1:%s", len(p.data), cells.X, cells.Y, base64.StdEncoding.EncodeToString(p.data)))
}

// drawSixel returns the image as sixel, in 256 colours.
func (p *Picture) drawSixel(maxWidth, maxHeight int, background color.Color) (string, error) {
	original, err := png.Decode(bytes.NewReader(p.data))
	if err != nil {
		return "", err
	}
	size := original.Bounds().Size()
	w, h := fit(size.X, size.Y, max(maxWidth, 1), max(maxHeight, 1))
	if background == nil {
		background = color.Black
	}
	flat := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(flat, flat.Bounds(), image.NewUniform(background), image.Point{}, draw.Src)
	draw.Draw(flat, flat.Bounds(), scale(original, w, h), image.Point{}, draw.Over)
	indexed := image.NewPaletted(flat.Bounds(), palette.Plan9)
	draw.FloydSteinberg.Draw(indexed, indexed.Bounds(), flat, image.Point{})
	return encodeSixel(indexed), nil
}
