package files

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// contentOf reads a file to search. It returns nil if the file is skipped. The content is valid
// until the next call.
func (r *searcher) contentOf(p place) ([]byte, error) {
	f, err := p.root.OpenFile(p.name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() { // another process may have replaced the file
		return nil, err
	}
	if info.Size() > MaxSearched {
		r.large = append(r.large, r.roots.displayPath(p))
		return nil, nil
	}
	if r.buf, err = readInto(r.buf[:0], io.LimitReader(f, MaxSearched)); err != nil {
		return nil, err
	}
	// A NUL anywhere makes the file binary; the tool read would not show its content either.
	if encodingOf(r.buf[:min(len(r.buf), sampleSize)]) == "" || bytes.IndexByte(r.buf, 0) >= 0 {
		r.binary++
		return nil, nil
	}
	return bytes.TrimPrefix(r.buf, []byte(byteOrder8)), nil
}

// readInto reads everything into buf, or into new memory if buf is too small.
func readInto(buf []byte, from io.Reader) ([]byte, error) {
	b := bytes.NewBuffer(buf)
	_, err := b.ReadFrom(from)
	return b.Bytes(), err
}

// checkEvery is the number of lines between two checks whether the call has been cancelled.
const checkEvery = 10_000

// searchLines adds the lines of content that match. It returns errStop if the result is full.
func (r *searcher) searchLines(shown, content string) error {
	if !r.Regexp && !r.IgnoreCase && !strings.Contains(content, r.Query) {
		return nil
	}
	all := splitLines(content)
	for i, line := range all {
		if i%checkEvery == 0 {
			if err := r.ctx.Err(); err != nil {
				return err
			}
		}
		line = strings.TrimSuffix(line, "\r")
		at := r.find(line)
		if at < 0 {
			continue
		}
		f := Finding{Path: shown, Line: i + 1, Text: clipLine(line, at)}
		f.Before = clipAll(all[max(i-r.Context, 0):i])
		f.After = clipAll(all[i+1 : min(i+1+r.Context, len(all))])
		if err := r.addFinding(f); err != nil {
			return err
		}
	}
	return nil
}

func clipAll(lines []string) (clipped []string) {
	for _, line := range lines {
		clipped = append(clipped, clipLine(strings.TrimSuffix(line, "\r"), 0))
	}
	return clipped
}

func (r *searcher) buildResult() (*mcp.CallToolResult, error) {
	if r.out.Matches == nil {
		r.out.Matches = []Finding{}
	}
	r.out.Note = r.omissionNote()
	text := r.out.formatSummary()
	if r.out.Note != "" {
		text += "[" + r.out.Note + "]"
	}
	return textAndStructured(strings.TrimSuffix(text, "\n"), r.out)
}

func (r *searcher) omissionNote() string {
	var notes []string
	addIf := func(condition bool, format string, args ...any) {
		if condition {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	addIf(len(r.out.Matches) == 0, "no match in the %d files searched", r.out.Files)
	addIf(r.out.More, "there are more matches than these %d: narrow the search, or raise limit", len(r.out.Matches))
	addIf(r.binary > 0, "%d binary files skipped", r.binary)
	addIf(len(r.large) > 0, "skipped because they have more than %s: %s", bytesText(MaxSearched), listNames(r.large, 5))
	addIf(r.unread > 0, "%d files or folders could not be read", r.unread)
	addIf(len(r.out.Matches) == 0 && !r.Ignored, "files that .gitignore files exclude were not searched: set ignored to search them")
	return strings.Join(notes, "; ")
}

// formatSummary formats the matches like grep: path:12:line for a match, path-11-line for its
// context. Context that two matches share is written once.
func (out *Findings) formatSummary() string {
	var b strings.Builder
	path, next := "", 0 // the current file, and the first of its lines not written yet
	write := func(f *Finding, line int, mark, text string) {
		if line >= next {
			fmt.Fprintf(&b, "%s%s%d%s%s\n", oneLine(f.Path), mark, line, mark, text)
			next = line + 1
		}
	}
	for i := range out.Matches {
		f := &out.Matches[i]
		if f.Line == 0 {
			b.WriteString(oneLine(f.Path) + "\n")
			continue
		}
		first := f.Line - len(f.Before)
		if f.Path != path {
			path, next = f.Path, 0
		}
		if next > 0 && first > next && (len(f.Before) > 0 || len(f.After) > 0) {
			b.WriteString("--\n")
		}
		for n, line := range f.Before {
			write(f, first+n, "-", line)
		}
		write(f, f.Line, ":", f.Text)
		after := f.After
		if i+1 < len(out.Matches) && out.Matches[i+1].Path == f.Path { // the next match writes its own line
			after = after[:min(len(after), max(out.Matches[i+1].Line-f.Line-1, 0))]
		}
		for n, line := range after {
			write(f, f.Line+1+n, "-", line)
		}
	}
	return b.String()
}
