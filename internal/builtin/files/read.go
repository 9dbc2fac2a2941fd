package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

type readIn struct {
	Path       string `json:"path" doc:"The file"`
	Offset     int    `json:"offset,omitzero" doc:"The first line to return, from 1; a negative number counts from the end, so -50 returns the last 50 lines" default:"1"`
	Limit      int    `json:"limit,omitzero" doc:"The maximal number of lines" default:"2000" minimum:"1" maximum:"100000"`
	ByteOffset *int64 `json:"byteOffset" doc:"The first byte to return, instead of offset: for files with very long or very many lines" minimum:"0"`
}

// Read is the result of the tool read.
type Read struct {
	Path     string `json:"path"`
	Kind     string `json:"kind" enum:"text,image,audio"`
	MIMEType string `json:"mimeType"`
	Size     int64  `json:"size" doc:"The size of the whole file in bytes"`
	Encoding string `json:"encoding,omitzero" doc:"The encoding of a text file; UTF-16 is converted to UTF-8"`
	LineEnds string `json:"lineEnds,omitzero" doc:"crlf if all lines in the file end with CR LF (text has LF); mixed if only some do"`
	Text     string `json:"text,omitzero"`
	Line     int    `json:"line,omitzero" doc:"The number of the first line in text; absent if unknown"`
	Lines    int    `json:"lines,omitzero" doc:"The number of lines in text"`
	Note     string `json:"note,omitzero" doc:"What was omitted, and how to read it"`
	// NextOffset and NextByte are the position of the omitted rest. At most one of them is set:
	// NextOffset if the line is known.
	NextOffset int   `json:"nextOffset,omitzero" doc:"The offset for the next call"`
	NextByte   int64 `json:"nextByte,omitzero" doc:"The byteOffset for the next call"`
}

func (s *Server) readFile(ctx context.Context, in readIn) (*mcp.CallToolResult, error) {
	p, err := s.roots.parsePath(in.Path)
	if err != nil {
		return nil, err
	}
	f, info, err := s.openFile(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	start, err := readSample(f)
	if err != nil {
		return nil, s.explainError(p, err)
	}
	k := detectKind(p.name, start)
	out := Read{Path: s.roots.displayPath(p), MIMEType: k.mimeType, Size: info.Size()}
	switch {
	case k.isText():
		return s.readText(ctx, f, in, k, out)
	case k.isImage(), k.isAudio():
		return s.readMedia(f, k, out)
	}
	return nil, binaryError(out.Path, info, k)
}

func binaryError(shown string, info fs.FileInfo, k kind) error {
	return fmt.Errorf("%s is a binary file of %s (%s): only text, images and sounds can be read", shown, bytesText(info.Size()), k.mimeType)
}

func (s *Server) readMedia(f *os.File, k kind, out Read) (*mcp.CallToolResult, error) {
	if out.Size > MaxMedia {
		return nil, fmt.Errorf("%s (%s) has %s: an image or sound can be read up to %s", out.Path, k.mimeType, bytesText(out.Size), bytesText(MaxMedia))
	}
	data, err := io.ReadAll(io.NewSectionReader(f, 0, MaxMedia))
	if err != nil {
		return nil, err
	}
	if k.isAudio() {
		out.Kind = "audio"
		return structuredResult(out, mcp.Audio(data, k.mimeType))
	}
	out.Kind = "image"
	return structuredResult(out, mcp.Image(data, k.mimeType))
}

func (s *Server) readText(ctx context.Context, f *os.File, in readIn, k kind, out Read) (*mcp.CallToolResult, error) {
	t, err := textOf(f, out.Size, k)
	if err != nil {
		return nil, err
	}
	w, err := t.readRequested(ctx, in)
	if err != nil {
		return nil, err
	}
	if at := bytes.IndexByte(w.content, 0); at >= 0 {
		return nil, fmt.Errorf("%s begins as text, but byte %d is NUL, so it is a binary file: only text before that byte can be read, and search skips the file", out.Path, w.start+int64(at))
	}
	out.Kind, out.Encoding, out.Line, out.Lines = "text", k.encoding, w.line, w.lines
	out.showWindow(w)
	out.setNotes(w, t.size, k)
	content := []mcp.Content{mcp.Text(out.Text)}
	if out.Note != "" {
		content = append(content, mcp.Text("["+out.Note+"]"))
	}
	return structuredResult(out, content...)
}

// readRequested reads the part of a text that the arguments ask for.
func (t text) readRequested(ctx context.Context, in readIn) (window, error) {
	switch {
	case in.ByteOffset != nil:
		return t.fromByte(*in.ByteOffset, in)
	case in.Offset < 0:
		start, first, err := t.findTail(-in.Offset, MaxText)
		if err != nil {
			return window{}, err
		}
		line := 0
		if first {
			line = 1
		}
		return t.readWindow(start, line, in.Limit, MaxText)
	}
	line := max(in.Offset, 1)
	start, err := t.findLine(ctx, line)
	if err != nil {
		return window{}, err
	}
	return t.readWindow(start, line, in.Limit, MaxText)
}

func (t text) fromByte(start int64, in readIn) (window, error) {
	if in.Offset != 1 {
		return window{}, errors.New("offset and byteOffset exclude each other: give only one of them")
	}
	if start > t.size {
		return window{}, fmt.Errorf("the file has %d bytes: byteOffset %d is after its end", t.size, start)
	}
	line := 0
	if start == 0 {
		line = 1
	}
	w, err := t.readWindow(start, line, in.Limit, MaxText)
	if n := skipPartial(w.content); start > 0 && err == nil {
		w.content, w.start = w.content[n:], start+int64(n)
	}
	return w, err
}

// showWindow sets Text and LineEnds. The text has no byte order mark and, if all lines end with CR
// LF, LF instead.
func (out *Read) showWindow(w window) {
	content := string(w.content)
	if w.start == 0 {
		content = strings.TrimPrefix(content, byteOrder8)
	}
	if out.LineEnds = lineEnds(content); out.LineEnds == endsCRLF {
		content = strings.ReplaceAll(content, "\r\n", "\n")
	}
	out.Text = content
}

// setNotes sets Note, which says how the result differs from the file: replaced bytes, encoding,
// omitted parts. It replaces the invalid bytes in Text.
func (out *Read) setNotes(w window, size int64, k kind) {
	var notes []string
	if bad := countInvalid(out.Text); bad > 0 {
		notes = append(notes, fmt.Sprintf("%d bytes are not UTF-8 and are shown as \uFFFD: the file may be in an older encoding", bad))
		out.Text, out.Encoding = replaceInvalid(out.Text), notQuite
	}
	if k.isUTF16() {
		notes = append(notes, "the text was converted from "+k.encoding+": edit cannot change the file")
	}
	if out.Size == 0 {
		notes = append(notes, "the file is empty")
	}
	if out.LineEnds == endsMixed {
		notes = append(notes, "some lines end with CR LF")
	}
	if omitted := out.describeOmitted(w, size); omitted != "" {
		notes = append(notes, omitted)
	}
	out.Note = strings.Join(notes, "; ")
}

// describeOmitted returns a note about the parts before and after the window, or "" if the window
// is the whole text. It sets NextOffset and NextByte.
func (out *Read) describeOmitted(w window, size int64) string {
	if w.start == 0 && w.nextOffset() >= size {
		return ""
	}
	shown := fmt.Sprintf("bytes %d to %d of %d", w.start, w.nextOffset(), size)
	if w.line > 0 {
		shown = fmt.Sprintf("lines %d to %d, bytes %d to %d of %d", w.line, w.line+w.lines-1, w.start, w.nextOffset(), size)
	}
	if w.lines == 0 {
		shown = fmt.Sprintf("no text from byte %d of %d on", w.start, size)
	}
	if w.nextOffset() >= size {
		return shown + " (the end)"
	}
	out.NextByte = w.nextOffset()
	if w.cut || w.line == 0 {
		if w.cut {
			shown += "; the last line is incomplete"
		}
		return shown + fmt.Sprintf("; continue with byteOffset %d", out.NextByte)
	}
	out.NextOffset = w.line + w.lines
	return shown + fmt.Sprintf("; continue with offset %d", out.NextOffset)
}

// replaceInvalid replaces each byte that is not valid UTF-8 by U+FFFD.
func replaceInvalid(content string) string {
	var b strings.Builder
	for _, r := range content { // range yields U+FFFD for each invalid byte
		b.WriteRune(r)
	}
	return b.String()
}
