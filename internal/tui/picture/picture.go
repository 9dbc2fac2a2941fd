// Package picture shows images in a terminal. By kitty's graphics protocol an image is drawn by
// placeholders, which are characters of the screen like all others: they scroll, and the terminal
// draws the image in their place. [Picture.Draw] paints it over the screen, by that protocol, by
// iTerm2's, or as sixel. The images may be foreign: they are decoded and encoded again, so that no
// byte of them reaches the terminal.
package picture

import (
	"bytes"
	"fmt"
	"image"
	_ "image/gif"  // decoded formats
	_ "image/jpeg" // decoded formats
	"image/png"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/kitty"
)

// Picture is an image for a terminal.
type Picture struct {
	// ID names the image in the terminal, from [FirstID] to [LastID]. It is also the colour of the
	// placeholders. 0 means that the terminal does not have it.
	ID            int
	Format        string // png, jpeg or gif
	Width, Height int    // of the original, in pixels
	Columns, Rows int    // on the screen

	data []byte // PNG
}

// The IDs of images. Smaller ones are the sixteen colours of the user's text.
const (
	FirstID = 16
	LastID  = 255
)

// Bounds of an image: of the original, of its part that goes to the terminal, and on the screen.
const (
	MaxBytes    = 16 << 20
	maxPixels   = 16 << 20
	sentWidth   = 1024
	sentHeight  = 768
	maxColumns  = 60
	maxRows     = 16
	cellWidth   = 8 // of an ordinary terminal, in pixels
	cellHeight  = 16
	minSidePart = 1 // a very flat image has one line
)

// Decode returns an image that fits a terminal. It reads PNG, JPEG, and the first image of a GIF.
func Decode(data []byte) (*Picture, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("the image has %d bytes, more than %d", len(data), MaxBytes)
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if config.Width <= 0 || config.Height <= 0 || config.Width > maxPixels/config.Height {
		return nil, fmt.Errorf("the image has %d by %d pixels, more than %d in all", config.Width, config.Height, maxPixels)
	}
	original, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	p := &Picture{Format: format, Width: config.Width, Height: config.Height}
	p.Columns, p.Rows = fit((p.Width+cellWidth-1)/cellWidth, (p.Height+cellHeight-1)/cellHeight, maxColumns, maxRows)
	var out bytes.Buffer
	if err := png.Encode(&out, shrink(original)); err != nil {
		return nil, err
	}
	p.data = out.Bytes()
	return p, nil
}

// fit makes a rectangle as small as another one, and keeps its proportions.
func fit(width, height, maxWidth, maxHeight int) (w, h int) {
	if width > maxWidth {
		width, height = maxWidth, height*maxWidth/width
	}
	if height > maxHeight {
		width, height = width*maxHeight/height, maxHeight
	}
	return max(width, minSidePart), max(height, minSidePart)
}

// shrink returns an image that is small enough to be sent.
func shrink(original image.Image) image.Image {
	from := original.Bounds()
	w, h := fit(from.Dx(), from.Dy(), sentWidth, sentHeight)
	return scale(original, w, h)
}

// scale returns an image of a size. Each pixel has the mean colour of its part of the original.
func scale(original image.Image, w, h int) image.Image {
	from := original.Bounds()
	scaled := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		top, bottom := from.Min.Y+y*from.Dy()/h, from.Min.Y+(y+1)*from.Dy()/h
		for x := range w {
			left, right := from.Min.X+x*from.Dx()/w, from.Min.X+(x+1)*from.Dx()/w
			scaled.Set(x, y, meanColor(original, image.Rect(left, top, right, bottom)))
		}
	}
	return scaled
}

// Size returns the size of the image in memory, in bytes.
func (p *Picture) Size() int { return len(p.data) }

// Forget frees the memory of an image that the terminal does not have any more. Its description
// stays.
func (p *Picture) Forget() { p.ID, p.data = 0, nil }

// Transmit returns the control sequences that give the image to a terminal.
func (p *Picture) Transmit() string {
	return chunkKitty(p.data, "a=T", "U=1", "f=100", "q=2", fmt.Sprintf("i=%d", p.ID), fmt.Sprintf("c=%d", p.Columns), fmt.Sprintf("r=%d", p.Rows))
}

// Delete returns the control sequence that removes an image from a terminal.
func Delete(id int) string {
	return ansi.KittyGraphics(nil, "a=d", "d=I", "q=2", fmt.Sprintf("i=%d", id))
}

// Query returns the control sequence that asks a terminal whether it can show images. The answer
// has the ID [FirstID] and the payload OK.
func Query() string {
	return ansi.KittyGraphics([]byte("AAAA"), "a=q", "t=d", "f=24", "s=1", "v=1", fmt.Sprintf("i=%d", FirstID))
}

// HasPlaceholders reports whether the terminal with a name (its answer to XTVERSION) draws images
// in the place of placeholders. Others know the protocol without them. A multiplexer has its own
// name.
func HasPlaceholders(name string) bool {
	return strings.HasPrefix(name, "kitty(") || strings.HasPrefix(strings.ToLower(name), "ghostty")
}

// Lines returns the placeholders of the image.
func (p *Picture) Lines() []string {
	lines := make([]string, p.Rows)
	for y := range lines {
		var b strings.Builder
		fmt.Fprintf(&b, "\x1b[38;5;%dm", p.ID)
		for x := range p.Columns {
			b.WriteRune(kitty.Placeholder)
			b.WriteRune(kitty.Diacritic(y))
			b.WriteRune(kitty.Diacritic(x))
		}
		b.WriteString("\x1b[39m")
		lines[y] = b.String()
	}
	return lines
}
