package screen

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"log"
	"math"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
)

func init() { xgb.Logger = log.New(io.Discard, "", 0) } // errors are returned

// captureX11 reads the root window of the default screen of an X server.
func captureX11(ctx context.Context, display string) (image.Image, error) {
	conn, closeConn, err := dialX11(ctx, display)
	if err != nil {
		return nil, explainX11(ctx, display, err)
	}
	defer closeConn()
	setup := xproto.Setup(conn)
	screen := setup.DefaultScreen(conn)
	width, height := screen.WidthInPixels, screen.HeightInPixels
	if err := checkSize(int(width), int(height)); err != nil {
		return nil, err
	}
	const allPlanes = math.MaxUint32
	reply, err := xproto.GetImage(conn, xproto.ImageFormatZPixmap, xproto.Drawable(screen.Root), 0, 0, width, height, allPlanes).Reply()
	switch {
	case err != nil:
		return nil, explainX11(ctx, display, err)
	case reply == nil:
		return nil, explainX11(ctx, display, errors.New("the server has closed the connection"))
	}
	return readPixels(reply.Data, setup, int(reply.Depth), int(width), int(height))
}

// readPixels converts a picture of 24 bits of colour in 32 bits a pixel, which all usual X servers
// have.
func readPixels(data []byte, setup *xproto.SetupInfo, depth, width, height int) (image.Image, error) {
	bits := 0
	for _, format := range setup.PixmapFormats {
		if int(format.Depth) == depth {
			bits = int(format.BitsPerPixel)
		}
	}
	if depth != 24 && depth != 32 || bits != 32 {
		return nil, fmt.Errorf("the screen has %d bits of colour in %d bits a pixel: want 24 in 32", depth, bits)
	}
	if len(data) < 4*width*height {
		return nil, fmt.Errorf("the X server sent %d bytes for %d × %d pixels", len(data), width, height)
	}
	red, green, blue := 2, 1, 0 // blue is the lowest byte
	if setup.ImageByteOrder == xproto.ImageOrderMSBFirst {
		red, green, blue = 1, 2, 3
	}
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := 0; i < 4*width*height; i += 4 {
		to, from := picture.Pix[i:i+4], data[i:i+4]
		to[0], to[1], to[2], to[3] = from[red], from[green], from[blue], 0xff
	}
	return picture, nil
}
