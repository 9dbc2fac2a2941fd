package control

import (
	"bytes"
	"testing"

	"github.com/dowel-mcp/dowel/transport"
)

// A listener that is too slow loses the oldest frames, and learns how many.
func TestSlowFrameListener(t *testing.T) {
	t.Parallel()
	var f Frames
	l := f.addListener("a")
	defer f.removeListener(l)
	data := bytes.Repeat([]byte("x"), maxFrameBytes/4)
	for i := range 6 {
		data[0] = byte('0' + i)
		f.Tap("a")(transport.Frame{Data: data})
		f.Tap("b")(transport.Frame{Data: data})
	}
	frames, missed := f.takeFrames(l)
	if len(frames) != 4 || missed != 2 || frames[0].Data[0] != '2' || frames[3].Data[0] != '5' {
		t.Errorf("%d frames, %d missed", len(frames), missed)
	}
	f.Tap("a")(transport.Frame{Data: bytes.Repeat(data, 5)})
	if frames, missed := f.takeFrames(l); len(frames) != 1 || missed != 0 {
		t.Errorf("a frame over the limit: %d frames, %d missed", len(frames), missed)
	}
}
