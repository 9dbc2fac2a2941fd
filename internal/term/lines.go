package term

import (
	"bufio"
	"context"
	"io"
	"strings"
)

// Lines reads lines that can be waited for under a context. A read that its context has left goes on, since a terminal
// cannot be interrupted: its line is the next one that is asked for, and the goroutine ends with the process at last.
type Lines struct {
	from    *bufio.Reader
	pending chan inputLine // the read that goes on; nil if none does
}

type inputLine struct {
	text string
	err  error
}

func NewLines(from io.Reader) *Lines { return &Lines{from: bufio.NewReader(from)} }

// Next returns the next line without its end; io.EOF says that there will be none (Ctrl-D).
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
