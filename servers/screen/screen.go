// Package screen is an MCP server that shows the screen of the machine on which it runs.
//
// The tool screenshot and the resource screen:/// return a picture of the whole screen. Before each
// picture the server asks the user of the client, and it refuses clients that cannot ask one,
// unless [Options.Allow] is set. If it is, clients that subscribe to the resource are notified when
// the screen changes; a subscription cannot ask the user.
package screen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"time"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/servers/internal/polling"
	"golang.org/x/image/draw"
)

// Version is the version that the server reports.
const Version = "1.0.0"

// maxPixels bounds the screen that is read: it takes four bytes a pixel.
const maxPixels = 64 << 20

// URI is the resource of the screen.
const URI = "screen:///"

const mimeType = "image/png"

// Options configure a server. The zero value asks before each picture.
type Options struct {
	// Allow takes pictures without asking.
	Allow bool
	// Capture returns a picture of the screen. The default reads the screen of the environment:
	// DISPLAY on X11, with grim on Wayland, with screencapture on macOS.
	Capture func(ctx context.Context) (image.Image, error)
	// Poll is how often the screen is compared for changes while a client is subscribed to it. The
	// default is [DefaultPoll].
	Poll time.Duration
}

// Server is a [server.Server] of the screen. Call Close to end its subscriptions.
type Server struct {
	*server.Server
	poller *polling.Poller
}

// Close ends all subscriptions.
func (s *Server) Close() error {
	s.poller.Close()
	return s.Server.Close()
}

type screenServer struct {
	capture func(ctx context.Context) (image.Image, error)
	allowed bool
}

// New returns the server.
func New(o Options) *Server {
	s := &screenServer{o.Capture, o.Allow}
	if s.capture == nil {
		s.capture = captureScreen
	}
	if o.Poll <= 0 {
		o.Poll = DefaultPoll
	}
	out := server.New("screen", Version, nil)
	server.Tool(out, "screenshot", "Returns a picture of the whole screen. The user is asked first.", s.takeScreenshot,
		server.ToolOptions{Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true)}})
	server.Resource(out, URI, "A picture of the whole screen. The user is asked first.", s.readScreen,
		server.ResourceOptions{Name: "screen", MIMEType: mimeType})
	poller := polling.New(polling.Options{
		Interval: o.Poll,
		Accepts:  func(uri string) bool { return s.allowed && uri == URI }, // to look at the screen needs permission
		Look:     s.readState,
		Changed:  out.Updated,
	})
	out.Use(poller.Middleware)
	return &Server{out, poller}
}

type screenshotIn struct {
	MaxWidth int `json:"max_width,omitempty" jsonschema:"width in pixels to which a wider picture is reduced, default 1600"`
}

func (s *screenServer) takeScreenshot(ctx context.Context, in screenshotIn) ([]mcp.Content, error) {
	if in.MaxWidth < 0 {
		return nil, fmt.Errorf("max_width is %d: want a number of pixels above zero", in.MaxWidth)
	}
	if in.MaxWidth == 0 {
		in.MaxWidth = 1600
	}
	picture, err := s.takePicture(ctx)
	if err != nil {
		return nil, err
	}
	shown := reduceWidth(picture, in.MaxWidth)
	data, err := encodePNG(shown)
	if err != nil {
		return nil, err
	}
	size, whole := shown.Bounds().Size(), picture.Bounds().Size()
	text := fmt.Sprintf("The screen has %d × %d pixels. The picture has %d × %d.", whole.X, whole.Y, size.X, size.Y)
	return []mcp.Content{mcp.Image(data, mimeType), mcp.Text(text)}, nil
}

func (s *screenServer) readScreen(ctx context.Context, _ struct{}) ([]byte, error) {
	picture, err := s.takePicture(ctx)
	if shown, ok := errors.AsType[*pictureError](err); ok { // other errors of resources stay in the log
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "%v", shown)
	}
	if err != nil {
		return nil, err
	}
	return encodePNG(picture)
}

// A pictureError says why there is no picture.
type pictureError struct{ error }

// takePicture asks the user, unless that is not necessary, and reads the screen.
func (s *screenServer) takePicture(ctx context.Context) (image.Image, error) {
	if !s.allowed {
		_, err := server.Ask[struct{}](ctx, "picture", "May this client see a picture of your whole screen, as it is when you answer?")
		switch {
		case errors.Is(err, server.ErrDeclined), errors.Is(err, server.ErrCancelled):
			return nil, &pictureError{errors.New("the user did not allow a picture of the screen")}
		case err != nil:
			return nil, err
		}
	}
	picture, err := s.capture(ctx)
	if err != nil {
		return nil, &pictureError{err}
	}
	return picture, nil
}

// reduceWidth returns the picture, or a smaller one of the same shape if it is wider than width.
func reduceWidth(picture image.Image, width int) image.Image {
	size := picture.Bounds().Size()
	if size.X <= width {
		return picture
	}
	reduced := image.NewRGBA(image.Rect(0, 0, width, max(1, size.Y*width/size.X)))
	draw.ApproxBiLinear.Scale(reduced, reduced.Bounds(), picture, picture.Bounds(), draw.Src, nil)
	return reduced
}

func encodePNG(picture image.Image) ([]byte, error) {
	var b bytes.Buffer
	err := png.Encode(&b, picture)
	return b.Bytes(), err
}
