package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/tui/screen"
)

// wireView shows the frames of the model's newest call that has any. It is safe for concurrent use.
type wireView struct {
	post func(message any)

	mu          sync.Mutex // guards the fields below
	isFollowing bool
	operation   uint64 // of the journal; 0 until a request was seen
	call        string // SERVER.TOOL, as shown
}

// addFrame shows a frame of a call of the model, unless a newer call has frames.
func (v *wireView) addFrame(f *journal.Frame) {
	v.mu.Lock()
	defer v.mu.Unlock()
	isFirst := f.Operation > v.operation
	switch {
	case isFirst:
		v.operation, v.call = f.Operation, toolname.Display(f.Server+"__"+f.Name)
	case f.Operation < v.operation:
		return
	}
	v.post(screen.Framed{Call: v.call, IsFirst: isFirst, Frame: screen.Frame{
		Time: f.Time.Local(), IsSent: f.Direction == framesink.Sent, Text: describeFrame(f),
	}})
}

// describeFrame returns the facts of a frame, and its parameters, result or error.
func describeFrame(f *journal.Frame) string {
	text := f.Kind.String() + " " + f.Method
	if f.Status != "" {
		text += fmt.Sprintf(" %s %s", f.Status, f.Took.Round(100*time.Microsecond))
	}
	return fmt.Sprintf("%s %d bytes %s", text, f.Size, contentOf(f.Body))
}

// contentOf returns the part of a message that the facts of its frame do not say, without _meta,
// which is long and says the same in every message.
func contentOf(body []byte) []byte {
	for _, member := range []string{"params", "result", "error"} {
		if raw := rawjson.Lookup(body, member); rawjson.IsObject(raw) {
			return withoutMeta(raw)
		}
	}
	return body
}

func withoutMeta(object []byte) []byte {
	var members [][]byte
	for it := rawjson.Object(object); it.Next(); {
		if key := string(it.Key); key != "_meta" {
			name, _ := json.Marshal(key) // a string has a form in JSON
			members = append(members, slices.Concat(name, []byte(":"), it.Value))
		}
	}
	return slices.Concat([]byte("{"), bytes.Join(members, []byte(",")), []byte("}"))
}

// followWire begins to follow the journal, once the agent has started.
func (c *conversation) followWire(v *wireView) {
	v.mu.Lock()
	isFollowing := v.isFollowing
	v.isFollowing, v.operation = true, 0
	v.mu.Unlock()
	if isFollowing {
		return
	}
	c.background.Go(func() {
		rt, err := c.awaitQuietly()
		if err == nil {
			err = rt.FollowFrames(c.ctx, v.addFrame)
		}
		if err == nil {
			return // the conversation ends
		}
		v.mu.Lock()
		v.isFollowing = false
		v.mu.Unlock()
		v.post(screen.WireFailed{Text: err.Error()})
	})
}
