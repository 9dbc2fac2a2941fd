package picture

import (
	"image"
	"image/color"
)

// meanColor returns the mean colour of a part of an image.
func meanColor(original image.Image, part image.Rectangle) color.Color {
	var r, g, b, a, n uint64
	for y := part.Min.Y; y < max(part.Max.Y, part.Min.Y+1); y++ {
		for x := part.Min.X; x < max(part.Max.X, part.Min.X+1); x++ {
			red, green, blue, alpha := original.At(x, y).RGBA()
			r, g, b, a, n = r+uint64(red), g+uint64(green), b+uint64(blue), a+uint64(alpha), n+1
		}
	}
	mean := func(sum uint64) uint16 { return uint16(sum / n) } //nolint:gosec // the mean of 16-bit values
	return color.RGBA64{mean(r), mean(g), mean(b), mean(a)}
}
