package term

import (
	"bufio"
	"context"
	"io"
	"strings"
)

// Lines reads lines and can stop waiting when a context ends. A read of a terminal cannot be
// interrupted, so it continues in the background: the next call receives its line, and its
// goroutine may last as long as the process. Lines is not safe for concurrent use.
type Lines struct {
	from    *bufio.Reader
	pending chan inputLine // the read in progress, or nil
}

// inputLine is the outcome of one read.
type inputLine struct {
	text string
	err  error
}

// NewLines returns a reader of the lines of from. It buffers: do not read from elsewhere.
func NewLines(from io.Reader) *Lines { return &Lines{from: bufio.NewReader(from)} }

// Next returns the next line without its line break. At the end of input (Ctrl-D) it returns
// [io.EOF]. If ctx ends first, the error is its cause.
func (l *Lines) Next(ctx context.Context) (string, error) {
	if l.pending == nil {
		got := make(chan inputLine, 1)
		l.pending = got
		go func() {
			text, err := l.from.ReadString('\n')
			if text != "" && err == io.EOF {
				err = nil
			}
			got <- inputLine{strings.TrimRight(text, "\r\n"), err}
		}()
	}
	select {
	case e := <-l.pending:
		l.pending = nil
		return e.text, e.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
