package files

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

// maxScan is the number of bytes of a file that are read to find a line by its number.
const maxScan = 64 << 20

// blockSize is the number of bytes that findLine reads at once.
const blockSize = 64 << 10

// text is a text in UTF-8 that can be read from any byte on.
type text struct {
	io.ReaderAt
	size int64
}

// window is a part of a text. It has whole lines, unless a line is longer than the window may be.
type window struct {
	content []byte
	start   int64 // the offset of its first byte
	line    int   // the number of its first line; 0 if unknown
	lines   int   // the number of lines
	cut     bool  // the last line is incomplete
}

func (w *window) nextOffset() int64 { return w.start + int64(len(w.content)) }

// readWindow reads lines from the byte start on: at most limit lines, and at most the lines that
// fit into most bytes. line is the number of the first line; 0 if unknown.
func (t text) readWindow(start int64, line, limit, most int) (window, error) {
	w := window{start: start, line: line}
	buf := make([]byte, min(int64(most), max(t.size-start, 0)))
	n, err := t.ReadAt(buf, start)
	if err != nil && !isEnd(err) {
		return w, err
	}
	buf = buf[:n]
	end := 0
	for end < len(buf) && w.lines < limit {
		at := bytes.IndexByte(buf[end:], '\n')
		if at < 0 {
			break
		}
		end += at + 1
		w.lines++
	}
	switch rest := len(buf) - end; {
	case rest == 0 || w.lines == limit:
	case start+int64(n) >= t.size: // the last line of the text has no line end
		end = len(buf)
		w.lines++
	case w.lines == 0: // the line does not fit
		end, w.cut = wholeCharacters(buf), true
		w.lines = 1
	}
	w.content = buf[:end]
	return w, nil
}

// findLine returns the offset of a line.
func (t text) findLine(ctx context.Context, line int) (int64, error) {
	seen := 1
	var at int64
	buf := make([]byte, blockSize)
	for seen < line && at < t.size {
		if at >= maxScan {
			return 0, fmt.Errorf("line %d is not in the first %s, and offset works only there: use byteOffset, or a negative offset to read the end", line, bytesText(maxScan))
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := t.ReadAt(buf, at)
		if n == 0 {
			if err == nil || isEnd(err) {
				break // the file has become shorter
			}
			return 0, err
		}
		block := buf[:n]
		for seen < line {
			end := bytes.IndexByte(block, '\n')
			if end < 0 {
				at += int64(len(block))
				break
			}
			seen++
			at += int64(end) + 1
			block = block[end+1:]
		}
	}
	if seen == line && (at < t.size || line == 1) {
		return at, nil
	}
	if at >= t.size && t.endsLine() {
		seen--
	}
	return 0, fmt.Errorf("the file has %d lines: line %d is after its end", seen, line)
}

func (t text) endsLine() bool {
	var last [1]byte
	n, _ := t.ReadAt(last[:], t.size-1)
	return n == 1 && last[0] == '\n'
}

// findTail returns the offset of the last lines: at most the given number, and at most the lines
// that fit into most bytes. first is true if the offset is the start of the text.
func (t text) findTail(lines, most int) (start int64, first bool, err error) {
	from := max(t.size-int64(most), 0)
	buf := make([]byte, t.size-from)
	n, err := t.ReadAt(buf, from)
	if err != nil && !isEnd(err) {
		return 0, false, err
	}
	buf = buf[:n]
	end := len(buf)
	if end > 0 && buf[end-1] == '\n' {
		end--
	}
	at := len(buf)
	for range lines {
		newline := bytes.LastIndexByte(buf[:end], '\n')
		if newline < 0 {
			if from == 0 {
				return 0, true, nil
			}
			if at == len(buf) { // the last line does not fit
				at = skipPartial(buf)
			}
			break
		}
		at, end = newline+1, newline
	}
	return from + int64(at), from == 0 && at == 0, nil
}

// skipPartial returns the number of bytes at the start of b that are the end of a cut character.
func skipPartial(b []byte) int {
	n := 0
	for n < len(b) && n < 3 && b[n]&0xC0 == 0x80 {
		n++
	}
	return n
}
