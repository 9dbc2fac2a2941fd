package eventstream

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func FuzzReader(f *testing.F) {
	for _, tt := range streams {
		f.Add([]byte(tt.in), uint16(3), uint16(20))
	}
	f.Add([]byte("data: "+strings.Repeat("x", 3*windowSize)+"\r\ndata: y\r\n\r\ndata: z\n\n"), uint16(5000), uint16(20_000))
	f.Fuzz(func(t *testing.T, in []byte, n, limit uint16) {
		limit = max(limit, 1)
		want := reference(string(in), int(limit))
		if got := read(&chunks{string(in), max(int(n), 1)}, int(limit)); !slices.Equal(got, want) {
			t.Errorf("%q\nis read as %s\nwant       %s", in, got, want)
		}
	})
}

// Written events must be read unchanged, except for the kind of line breaks.
func FuzzEncode(f *testing.F) {
	f.Add("", false, "", []byte(""), uint32(0))
	f.Add("id", true, "name", []byte("a\nb\r\nc\rd"), uint32(1500))
	f.Add("i\r\nd\x00", true, "na\nme", []byte("\n"), uint32(1))
	f.Add("", true, "message", []byte("data: x\n\ndata: y"), uint32(1<<32-1))
	f.Fuzz(func(t *testing.T, id string, hasID bool, name string, data []byte, retry uint32) {
		if len(id)+len(name) > maxField {
			return
		}
		e := Event{ID: id, HasID: hasID, Name: name, Data: data, Retry: time.Duration(retry) * time.Millisecond}
		r := NewReader(io.MultiReader(bytes.NewReader(Encode(e)), strings.NewReader("data: next\n\n")), 0)
		got, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		drop := strings.NewReplacer("\r", "", "\n", "", "\x00", "")
		want := Event{HasID: hasID, Name: drop.Replace(name), Retry: e.Retry}
		if hasID {
			want.ID = drop.Replace(id)
		}
		if want.Name == message {
			want.Name = ""
		}
		want.Data = []byte(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data)))
		if text(got) != text(want) {
			t.Errorf("%q\nis read as %s\nwant       %s", Encode(e), text(got), text(want))
		}
		if next, err := r.Next(); err != nil || string(next.Data) != "next" {
			t.Errorf("the event behind it: %v %v", next, err)
		}
	})
}
