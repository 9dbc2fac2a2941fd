package files

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// contentOf reads a file to search; nil where it is passed over.
func (r *searcher) contentOf(p place) ([]byte, error) {
	f, err := p.root.OpenFile(p.name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() { // something else is there since
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

// readInto reads everything into the memory of buf, or more.
func readInto(buf []byte, from io.Reader) ([]byte, error) {
	b := bytes.NewBuffer(buf)
	_, err := b.ReadFrom(from)
	return b.Bytes(), err
}

// checkEvery is how many lines of one file are between two looks whether the search is still
// wanted.
const checkEvery = 10_000

// searchLines finds the lines that match.
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
	text := r.out.summary()
	if r.out.Note != "" {
		text += "[" + r.out.Note + "]"
	}
	return textAndStructured(strings.TrimSuffix(text, "\n"), r.out)
}

func (r *searcher) omissionNote() string {
	var notes []string
	say := func(say bool, format string, args ...any) {
		if say {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	say(len(r.out.Matches) == 0, "nothing matches in the %d files searched", r.out.Files)
	say(r.out.More, "there are more matches than these %d: narrow the search, or raise limit", len(r.out.Matches))
	say(r.binary > 0, "%d binary files passed over", r.binary)
	say(len(r.large) > 0, "passed over because they have more than %s: %s", bytesText(MaxSearched), listSome(r.large, 5))
	say(r.unread > 0, "%d files or folders could not be read", r.unread)
	say(len(r.out.Matches) == 0 && !r.Ignored, "what .gitignore files exclude was not searched")
	return strings.Join(notes, "; ")
}

// summary shows the matches as grep does: path:12:line, with path-11-line for the context.
func (out *Findings) summary() string {
	var b strings.Builder
	path, next := "", 0 // the line that would come next
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
		if i+1 < len(out.Matches) && out.Matches[i+1].Path == f.Path { // which shows its own line
			after = after[:min(len(after), max(out.Matches[i+1].Line-f.Line-1, 0))]
		}
		for n, line := range after {
			write(f, f.Line+1+n, "-", line)
		}
	}
	return b.String()
}
