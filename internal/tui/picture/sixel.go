package picture

import (
	"fmt"
	"image"
	"strconv"
	"strings"
)

// Parts of the sixel format.
const (
	sixelBegin = "\x1bP0;1q" // pixels without a colour stay as they are
	sixelEnd   = "\x1b\\"
	sixelRows  = 6   // of pixels in a band
	sixelZero  = '?' // a column of a band without pixels; each set pixel adds its bit
	sixelFull  = 100 // the brightest red, green or blue
)

// encodeSixel returns an image with a palette of at most 256 colours as sixel. It writes numbers
// and the characters of the format, and nothing else.
func encodeSixel(m *image.Paletted) string {
	var b strings.Builder
	size := m.Bounds().Size()
	fmt.Fprintf(&b, "%s\"1;1;%d;%d", sixelBegin, size.X, size.Y)
	writeSixelColors(&b, m)
	for top := 0; top < size.Y; top += sixelRows {
		writeSixelBand(&b, m, top)
		b.WriteByte('-')
	}
	b.WriteString(sixelEnd)
	return b.String()
}

// writeSixelColors defines the colours that the image uses.
func writeSixelColors(b *strings.Builder, m *image.Paletted) {
	var isUsed [256]bool
	for _, index := range m.Pix {
		isUsed[index] = true
	}
	const brightest = 0xffff
	percent := func(v uint32) uint32 { return (v*sixelFull + brightest/2) / brightest }
	for index, c := range m.Palette {
		if isUsed[index] {
			red, green, blue, _ := c.RGBA()
			fmt.Fprintf(b, "#%d;2;%d;%d;%d", index, percent(red), percent(green), percent(blue))
		}
	}
}

// writeSixelBand writes sixelRows rows of pixels: one line for each colour, over each other.
func writeSixelBand(b *strings.Builder, m *image.Paletted, top int) {
	size := m.Bounds().Size()
	var columns [256][]byte
	for y := top; y < min(top+sixelRows, size.Y); y++ {
		for x := range size.X {
			index := m.Pix[y*m.Stride+x]
			if columns[index] == nil {
				columns[index] = make([]byte, size.X)
			}
			columns[index][x] |= 1 << (y - top)
		}
	}
	isFirst := true
	for index, bits := range columns {
		if bits == nil {
			continue
		}
		if !isFirst {
			b.WriteByte('$')
		}
		isFirst = false
		b.WriteByte('#')
		b.WriteString(strconv.Itoa(index))
		writeSixelLine(b, bits)
	}
}

// writeSixelLine writes the columns of one colour. Equal ones are written once with their number.
func writeSixelLine(b *strings.Builder, bits []byte) {
	const shortest = 4 // of a run that a number makes shorter
	for from := 0; from < len(bits); {
		to := from + 1
		for to < len(bits) && bits[to] == bits[from] {
			to++
		}
		character := string(rune(sixelZero + bits[from]))
		if n := to - from; n >= shortest {
			b.WriteString("!" + strconv.Itoa(n) + character)
		} else {
			b.WriteString(strings.Repeat(character, n))
		}
		from = to
	}
}
