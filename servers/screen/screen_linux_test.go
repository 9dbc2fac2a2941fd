package screen

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
)

// startScreen starts an X server without a monitor, and returns its display.
func startScreen(t *testing.T, size string, words ...string) (display string) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := exec.Command("Xvfb", append(words, "-displayfd", "3", "-screen", "0", size, "-nolisten", "tcp", "-noreset")...)
	cmd.ExtraFiles = []*os.File{write}
	err = cmd.Start()
	write.Close()
	if err != nil {
		t.Fatalf("Xvfb, which make servers installs: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended already if the test failed
		_ = cmd.Wait()
	})
	var number int
	if _, err := fmt.Fscan(read, &number); err != nil { // it writes the number when it accepts connections
		t.Fatalf("Xvfb has not started: %v", err)
	}
	return fmt.Sprintf(":%d", number)
}

var (
	windowColor = color.RGBA{0x12, 0x34, 0x56, 0xff}
	windowPlace = image.Rect(40, 30, 140, 80)
)

// drawWindow shows a window of one color.
func drawWindow(t *testing.T, display string) {
	t.Helper()
	conn, err := xgb.NewConnDisplay(display)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	screen := xproto.Setup(conn).DefaultScreen(conn)
	window, err := xproto.NewWindowId(conn)
	if err != nil {
		t.Fatal(err)
	}
	at, size := windowPlace.Min, windowPlace.Size()
	create := xproto.CreateWindowChecked(conn, screen.RootDepth, window, screen.Root, int16(at.X), int16(at.Y), uint16(size.X), uint16(size.Y), 0,
		xproto.WindowClassInputOutput, screen.RootVisual, xproto.CwBackPixel, []uint32{0x123456})
	if err := errors.Join(create.Check(), xproto.MapWindowChecked(conn, window).Check()); err != nil {
		t.Fatal(err)
	}
}

// dial connects to a server in every check of the protocol. answer is the action of the user; empty
// means that the client cannot ask one.
func dial(t *testing.T, o Options, revision mcp.Revision, answer mcp.ElicitAction) (c *client.Client, questions *int) {
	t.Helper()
	questions = new(int)
	options := &client.Options{Wire: client.Wire{Revision: revision, Tap: mcptest.ClientTap(t)}}
	if answer != "" {
		options.Answers.Elicit = func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
			*questions++
			if !strings.Contains(q.Message, "your whole screen") {
				t.Errorf("the question is %q", q.Message)
			}
			return &mcp.ElicitResult{Action: answer}, nil
		}
	}
	s := New(o)
	c, err := client.Dial(t.Context(), s, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c, questions
}

// takeScreenshot calls the tool and decodes the picture.
func takeScreenshot(t *testing.T, c *client.Client, width int) image.Image {
	t.Helper()
	res, err := client.Call[*mcp.CallToolResult](t.Context(), c, "screenshot", map[string]int{"max_width": width})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Content) != 2 || res.Content[0].MIMEType != "image/png" {
		t.Fatalf("the result is %+v", res)
	}
	picture, err := png.Decode(bytes.NewReader(res.Content[0].Data))
	if err != nil {
		t.Fatal(err)
	}
	return picture
}

// wantWindow checks that a picture shows the window and nothing else. scale is screen to picture.
func wantWindow(t *testing.T, picture image.Image, scale int) {
	t.Helper()
	for at, want := range map[image.Point]color.RGBA{
		windowPlace.Min.Add(image.Pt(scale, scale)):     windowColor,
		windowPlace.Max.Sub(image.Pt(2*scale, 2*scale)): windowColor,
		windowPlace.Min.Sub(image.Pt(2*scale, 2*scale)): {0, 0, 0, 0xff},
		windowPlace.Max.Add(image.Pt(scale, scale)):     {0, 0, 0, 0xff},
	} {
		if got := color.RGBAModel.Convert(picture.At(at.X/scale, at.Y/scale)); got != want {
			t.Errorf("the pixel of %v is %v, want %v", at, got, want)
		}
	}
}

func TestPictures(t *testing.T) {
	t.Setenv("WAYLAND_DISPLAY", "")
	display := startScreen(t, "320x200x24")
	t.Setenv("DISPLAY", display)
	drawWindow(t, display)
	for _, revision := range mcp.Revisions() {
		mayAsk := revision >= mcp.Revision20250618
		c, questions := dial(t, Options{}, revision, mcp.ElicitAccept)
		if !mayAsk { // the revision has no questions
			wantRefusal(t, c, "elicitation")
			c, questions = dial(t, Options{Allow: true}, revision, "")
		}
		picture := takeScreenshot(t, c, 0)
		if picture.Bounds().Size() != image.Pt(320, 200) {
			t.Errorf("%s: the picture has %v", revision, picture.Bounds())
		}
		wantWindow(t, picture, 1)
		small := takeScreenshot(t, c, 160)
		if small.Bounds().Size() != image.Pt(160, 100) {
			t.Errorf("%s: the reduced picture has %v", revision, small.Bounds())
		}
		wantWindow(t, small, 2)
		read, err := c.ReadResource(t.Context(), URI)
		if err != nil || len(read.Contents) != 1 || read.Contents[0].MIMEType != "image/png" {
			t.Fatalf("%s: %+v, %v", revision, read, err)
		}
		whole, err := png.Decode(bytes.NewReader(read.Contents[0].Blob))
		if err != nil {
			t.Fatal(err)
		}
		wantWindow(t, whole, 1)
		if want := 3; mayAsk && *questions != want {
			t.Errorf("%s: the user was asked %d times, want %d", revision, *questions, want)
		}
	}
}

// wantRefusal checks that a client gets no picture.
func wantRefusal(t *testing.T, c *client.Client, want string) {
	t.Helper()
	_, err := client.Call[*mcp.CallToolResult](t.Context(), c, "screenshot", nil)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the call: %v, want %q", err, want)
	}
	if read, err := c.ReadResource(t.Context(), URI); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the resource: %+v, %v, want %q", read, err, want)
	}
}

// No picture is taken for clients that cannot ask, and for users that refuse.
func TestPicturesWithoutConsent(t *testing.T) {
	taken := Options{Capture: func(context.Context) (image.Image, error) {
		t.Error("a picture was taken")
		return nil, errors.New("taken")
	}}
	latest := mcp.Revisions()[0]
	c, _ := dial(t, taken, latest, "")
	wantRefusal(t, c, "Missing required client capability")
	for _, answer := range []mcp.ElicitAction{mcp.ElicitDecline, mcp.ElicitCancel} {
		c, _ := dial(t, taken, latest, answer)
		wantRefusal(t, c, "the user did not allow a picture")
	}
}

// Each reason for which there is no picture is told.
func TestNoScreen(t *testing.T) {
	for name, tt := range map[string]struct {
		display, wayland, want string
	}{
		"no display":       {"", "", "neither DISPLAY nor WAYLAND_DISPLAY"},
		"an absent server": {":4242", "", "the X server :4242"},
		"another depth":    {startScreen(t, "64x64x16"), "", "16 bits of colour"},
		"Wayland":          {"", "wayland-9", "grim is not installed"},
	} {
		t.Setenv("DISPLAY", tt.display)
		t.Setenv("WAYLAND_DISPLAY", tt.wayland)
		if tt.wayland != "" {
			t.Setenv("PATH", t.TempDir())
		}
		c, _ := dial(t, Options{Allow: true}, mcp.Revisions()[0], "")
		_, err := client.Call[*mcp.CallToolResult](t.Context(), c, "screenshot", nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// pngHeader returns the beginning of a PNG of a size.
func pngHeader(width, height uint32) []byte {
	chunk := append([]byte("IHDR"), binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)...)
	chunk = append(chunk, 8, 6, 0, 0, 0) // RGBA
	header := binary.BigEndian.AppendUint32([]byte("\x89PNG\r\n\x1a\n"), uint32(len(chunk)-4))
	return binary.BigEndian.AppendUint32(append(header, chunk...), crc32.ChecksumIEEE(chunk))
}

// A program on PATH takes the picture on Wayland. Its output is not trusted.
func TestPictureOfAProgram(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "wayland-9")
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	c, _ := dial(t, Options{Allow: true}, mcp.Revisions()[0], "")
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewRGBA(image.Rect(0, 0, 7, 5))); err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		"base64 -d <<< " + base64.StdEncoding.EncodeToString(picture.Bytes()):         "",
		"echo no compositor >&2; exit 1":                                              "grim took no picture: no compositor",
		"echo this is text and not a picture":                                         "not a PNG",
		"base64 -d <<< " + base64.StdEncoding.EncodeToString(pngHeader(1<<16, 1<<16)): "want at most",
	} {
		if err := os.WriteFile(folder+"/grim", []byte("#!/bin/bash\n"+body+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := client.Call[*mcp.CallToolResult](t.Context(), c, "screenshot", nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}
