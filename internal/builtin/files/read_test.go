package files

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/dowel-mcp/dowel/mcp"
)

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func TestReadsLines(t *testing.T) {
	d := newDesk(t, map[string]string{"ten.txt": numbered(10), "open.txt": "a\nb", "empty": "", "long.txt": strings.Repeat("é", MaxText) + "\nend\n", "many.txt": numbered(5000)})
	for _, test := range []struct {
		in   args
		text string
		want Read // without fields that are the same in all cases
	}{
		{args{"path": "ten.txt"}, numbered(10), Read{Line: 1, Lines: 10}},
		{args{"path": "ten.txt", "offset": 9}, "line 9\nline 10\n", Read{Line: 9, Lines: 2}},
		{args{"path": "ten.txt", "offset": 2, "limit": 2}, "line 2\nline 3\n", Read{Line: 2, Lines: 2, NextOffset: 4, NextByte: 21}},
		{args{"path": "ten.txt", "offset": -2}, "line 9\nline 10\n", Read{Lines: 2}},
		{args{"path": "ten.txt", "offset": -99}, numbered(10), Read{Line: 1, Lines: 10}},
		{args{"path": "ten.txt", "offset": -10}, numbered(10), Read{Line: 1, Lines: 10}},
		{args{"path": "ten.txt", "offset": -3, "limit": 1}, "line 8\n", Read{Lines: 1, NextByte: 56}},
		{args{"path": "ten.txt", "byteOffset": 56}, "line 9\nline 10\n", Read{Lines: 2}},
		{args{"path": "ten.txt", "byteOffset": 0, "limit": 1}, "line 1\n", Read{Line: 1, Lines: 1, NextOffset: 2, NextByte: 7}},
		{args{"path": "open.txt"}, "a\nb", Read{Line: 1, Lines: 2}},
		{args{"path": "open.txt", "offset": 2}, "b", Read{Line: 2, Lines: 1}},
		{args{"path": "open.txt", "offset": -1}, "b", Read{Lines: 1}},
		{args{"path": "empty"}, "", Read{Line: 1}},
		{args{"path": "long.txt"}, strings.Repeat("é", MaxText/2), Read{Line: 1, Lines: 1, NextByte: MaxText}},
		{args{"path": "long.txt", "byteOffset": MaxText + 1}, strings.Repeat("é", MaxText/2-1) + "\n", Read{Lines: 1, NextByte: 2*MaxText + 1}},
		{args{"path": "long.txt", "offset": 2}, "end\n", Read{Line: 2, Lines: 1}},
		{args{"path": "many.txt"}, numbered(2000), Read{Line: 1, Lines: 2000, NextOffset: 2001, NextByte: int64(len(numbered(2000)))}},
	} {
		var got Read
		d.call("read", test.in, &got)
		if got.Text != test.text {
			t.Errorf("%v: the text has %d bytes, want %d: %.80q", test.in, len(got.Text), len(test.text), got.Text)
		}
		whole := got.NextByte == 0 && got.Line == 1
		if whole != (got.Note == "" || got.Size == 0) {
			t.Errorf("%v: the note is %q", test.in, got.Note)
		}
		want := test.want
		want.Path, want.Kind, want.MIMEType, want.Encoding = got.Path, "text", "text/plain", utf8Text
		want.Size, want.Text, want.Note = got.Size, got.Text, got.Note
		if got != want {
			got.Text, want.Text = "", ""
			t.Errorf("%v:\n got %+v\nwant %+v", test.in, got, want)
		}
	}
	d.steps([]step{
		{"read", args{"path": "ten.txt", "offset": 11}, "error: the file has 10 lines: line 11 is after its end"},
		{"read", args{"path": "open.txt", "offset": 3}, "error: the file has 2 lines"},
		{"read", args{"path": "empty", "offset": 2}, "error: line 2 is after its end"},
		{"read", args{"path": "empty"}, "the file is empty"},
		{"read", args{"path": "ten.txt", "byteOffset": 9999}, "error: byteOffset 9999 is after its end"},
		{"read", args{"path": "ten.txt", "byteOffset": 1, "offset": 3}, "error: offset and byteOffset exclude each other"},
		{"read", args{"path": "ten.txt", "limit": 3}, "[lines 1 to 3, bytes 0 to 21 of 71; continue with offset 4"},
		{"read", args{"path": "long.txt"}, "the last line is incomplete; continue with byteOffset 131072"},
		{"read", args{"path": "ten.tyt"}, "error: no such file or folder: ten.tyt; did you mean ten.txt?"},
		{"read", args{"path": "."}, "error: . is a folder: use list"},
		{"read", args{"path": ""}, "error: the path is empty"},
	})
}

func TestReadsEncodings(t *testing.T) {
	wide := func(mark string, bigEndian bool) string {
		out := []byte(mark)
		for _, u := range utf16.Encode([]rune("grüße\r\n𝄞 clef\r\n")) {
			if bigEndian {
				u = u>>8 | u<<8
			}
			out = append(out, byte(u), byte(u>>8))
		}
		return string(out)
	}
	d := newDesk(t, map[string]string{
		"bom": byteOrder8 + "x\n", "crlf": "a\r\nb\r\n", "mixed": "a\r\nb\n", "latin": "gr\xfc\xdfe und mehr Text\n",
		"le.txt": wide(byteOrderLE, false), "be.txt": wide(byteOrderBE, true), "late": numbered(2000) + "x\x00y", "half": strings.Repeat("a", sampleSize-1) + "é",
	})
	for name, want := range map[string]Read{
		"bom":    {Text: "x\n", Encoding: utf8BOM},
		"crlf":   {Text: "a\nb\n", Encoding: utf8Text, LineEnds: "crlf"},
		"mixed":  {Text: "a\r\nb\n", Encoding: utf8Text, LineEnds: "mixed", Note: "CR LF"},
		"latin":  {Text: "gr\uFFFD\uFFFDe und mehr Text\n", Encoding: notQuite, Note: "2 bytes are not UTF-8"},
		"le.txt": {Text: "grüße\n𝄞 clef\n", Encoding: utf16LE, LineEnds: "crlf", Note: "utf-16le"},
		"be.txt": {Text: "grüße\n𝄞 clef\n", Encoding: utf16BE, LineEnds: "crlf", Note: "utf-16be"},
		"half":   {Text: strings.Repeat("a", sampleSize-1) + "é", Encoding: utf8Text},
	} {
		var got Read
		d.call("read", args{"path": name}, &got)
		if got.Text != want.Text || got.Encoding != want.Encoding || got.LineEnds != want.LineEnds || !strings.Contains(got.Note, want.Note) || (want.Note == "") != (got.Note == "") {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	d.steps([]step{
		{"read", args{"path": "late", "limit": 1}, "line 1\n"},
		{"read", args{"path": "late", "offset": 2000}, "error: late begins as text, but byte"},
		{"edit", args{"path": "le.txt", "edits": []args{{"old": "a", "new": "b"}}}, "error: is text in utf-16le"},
		{"edit", args{"path": "late", "edits": []args{{"old": "line 1\n", "new": "b"}}}, "error: is a binary file"},
	})
}

// png is an image of one pixel.
const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"

func TestReadsMedia(t *testing.T) {
	d := newDesk(t, map[string]string{
		"a.png": png, "noname": png, "b.wav": "RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00", "c.mp3": "ID3\x03\x00\x00\x00\x00\x00\x21",
		"d.zip": "PK\x03\x04\x00\x00", "e.pdf": "%PDF-1.7\nplain", "f.svg": "<svg/>", "g.flac": "fLaC\x00\x00\x00\x22", "h.bin": "\x01\x02\x00\xff",
	})
	for name, want := range map[string]mcp.Content{
		"a.png": mcp.Image(nil, "image/png"), "noname": mcp.Image(nil, "image/png"), "b.wav": mcp.Audio(nil, "audio/wave"),
		"c.mp3": mcp.Audio(nil, "audio/mpeg"), "g.flac": mcp.Audio(nil, "audio/flac"),
	} {
		result := d.result("read", args{"path": name})
		if result.IsError || len(result.Content) != 1 {
			t.Fatalf("%s: %+v", name, result)
		}
		got := result.Content[0]
		if got.Type != want.Type || got.MIMEType != want.MIMEType || string(got.Data) != d.content(name) {
			t.Errorf("%s: got %s %s of %d bytes", name, got.Type, got.MIMEType, len(got.Data))
		}
	}
	d.steps([]step{
		{"read", args{"path": "d.zip"}, "error: d.zip is a binary file of 6 bytes (application/zip): only text, images and sounds can be read"},
		{"read", args{"path": "e.pdf"}, "error: (application/pdf)"},
		{"read", args{"path": "h.bin"}, "error: h.bin is a binary file of 4 bytes (application/octet-stream)"},
		{"read", args{"path": "f.svg"}, "<svg/>"},
	})
	d.must(os.Truncate(d.path("a.png"), MaxMedia+1))
	d.steps([]step{{"read", args{"path": "a.png"}, "error: an image or sound can be read up to 8.0 MiB"}})
}

// counting counts the bytes that are read.
type counting struct {
	*os.File
	n int64
}

func (c *counting) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.File.ReadAt(b, at)
	c.n += int64(n)
	return n, err
}

func TestReadsPartsOfHugeFile(t *testing.T) {
	const size = 5 << 30
	d := newDesk(t, map[string]string{"huge.log": numbered(1000)})
	f, err := os.OpenFile(d.path("huge.log"), os.O_RDWR, 0)
	d.must(err)
	defer f.Close()
	const end = "\nthe last but one\nthe last\n"
	_, err = f.WriteAt([]byte(end), size-int64(len(end))) // and a hole before it
	d.must(err)
	at := int64(size - len("the last\n"))
	d.steps([]step{
		{"read", args{"path": "huge.log", "limit": 2}, "line 1\nline 2\n"},
		{"read", args{"path": "huge.log", "offset": 1000, "limit": 1}, "line 1000\n"},
		{"read", args{"path": "huge.log", "offset": -1}, "the last\n"},
		{"read", args{"path": "huge.log", "offset": -2}, "the last but one\nthe last\n"},
		{"read", args{"path": "huge.log", "byteOffset": at}, "the last\n"},
		{"read", args{"path": "huge.log", "offset": 1001}, "error: is NUL, so it is a binary file"},
		{"read", args{"path": "huge.log", "offset": 1002}, "error: line 1002 is not in the first 64.0 MiB"},
		{"edit", args{"path": "huge.log", "edits": []args{{"old": "a", "new": "b"}}}, "error: huge.log has 5.0 GiB: edit can change files of at most 16.0 MiB"},
		{"search", args{"query": "line 7"}, "no match in the 0 files searched; skipped because they have more than 32.0 MiB: huge.log"},
	})
	for _, in := range []readIn{{Offset: 500, Limit: 10}, {Offset: -5, Limit: 10}, {Offset: 1, ByteOffset: &at, Limit: 10}} {
		c := &counting{File: f}
		if _, err := (text{c, size}).readRequested(t.Context(), in); err != nil || c.n > 2*MaxText {
			t.Errorf("%+v: read %d bytes, %v", in, c.n, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (text{f, size}).findLine(ctx, 1002); err != context.Canceled {
		t.Errorf("got %v after it was cancelled", err)
	}
}

func TestWindows(t *testing.T) {
	content := []byte("a\nbb\nccc\n\nd")
	lines := bytes.SplitAfter(content, []byte("\n"))
	src := text{bytes.NewReader(content), int64(len(content))}
	for most := 1; most < len(content)+2; most++ {
		var all []byte
		for at := int64(0); at < src.size; {
			w, err := src.readWindow(at, 0, 100, most)
			if err != nil || len(w.content) == 0 || len(w.content) > most {
				t.Fatalf("at %d of at most %d: %+v, %v", at, most, w, err)
			}
			all, at = append(all, w.content...), w.nextOffset()
		}
		if !bytes.Equal(all, content) {
			t.Errorf("in windows of %d: %q", most, all)
		}
	}
	for n := range lines {
		at, err := src.findLine(t.Context(), n+1)
		if want := len(bytes.Join(lines[:n], nil)); err != nil || at != int64(want) {
			t.Errorf("line %d begins at %d, %v; want %d", n+1, at, err, want)
		}
		if at, first, err := src.findTail(n+1, 100); err != nil || string(content[at:]) != string(bytes.Join(lines[len(lines)-n-1:], nil)) || first != (n+1 == len(lines)) {
			t.Errorf("the last %d begin at %d, %v, %v", n+1, at, first, err)
		}
	}
}

// A pipe is not opened: that would block until a writer comes.
func TestReadsFilesOnly(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "x"})
	if !makePipe(d.path("pipe")) {
		t.Log("the system has no pipes with names")
		return
	}
	done := make(chan string, 1)
	go func() {
		_, _, err := d.server.openFile(place{d.server.roots[0], "pipe"})
		done <- fmt.Sprint(err)
	}()
	select {
	case got := <-done:
		if got != "pipe is not a file (kind: pipe): it cannot be read or written" {
			t.Error(got)
		}
	case <-time.After(time.Minute):
		t.Fatal("openFile blocks")
	}
	d.steps([]step{
		{"write", args{"path": "pipe", "content": ""}, "error: is not a file (kind: pipe)"},
		{"search", args{"query": "x"}, "a:1:x"},
		{"list", args{}, "pipe  (pipe)"},
		{"info", args{"path": "pipe"}, "pipe pipe"},
		{"delete", args{"path": "pipe"}, "deleted the pipe pipe"},
	})
}
