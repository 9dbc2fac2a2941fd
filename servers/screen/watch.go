package screen

import (
	"context"
	"fmt"
	"hash/maphash"
	"image"
	"time"

	"golang.org/x/image/draw"
)

// DefaultPoll is the default of [Options.Poll].
const DefaultPoll = 5 * time.Second

// readState returns a digest of the screen.
func (s *screenServer) readState(ctx context.Context, _, _ string) (string, error) {
	picture, err := s.capture(ctx)
	if err != nil {
		return "", err
	}
	return digestPicture(picture), nil
}

// digestSeed makes digests comparable within this process only.
var digestSeed = maphash.MakeSeed()

// digestPicture returns a text that changes with the pixels and the size of a picture. It takes a
// fraction of the time that reading the screen takes.
func digestPicture(picture image.Image) string {
	pixels, ok := picture.(*image.RGBA)
	if !ok {
		pixels = image.NewRGBA(picture.Bounds())
		draw.Draw(pixels, pixels.Rect, picture, pixels.Rect.Min, draw.Src)
	}
	return fmt.Sprintf("%v %x", pixels.Rect, maphash.Bytes(digestSeed, pixels.Pix))
}
