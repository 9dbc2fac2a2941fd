package main

import (
	"bufio"
	"context"
	"io"
	"strings"
)

// lines reads lines that can be waited for under a context. A read that its context has left goes on, since a terminal
// cannot be interrupted: its line is the next one that is asked for, and the goroutine ends with the process at last.
type lines struct {
	from    *bufio.Reader
	reading chan entered // the read that goes on; nil if none does
}

type entered struct {
	text string
	err  error
}

func newLines(from io.Reader) *lines { return &lines{from: bufio.NewReader(from)} }

// next returns the next line without its end; io.EOF says that there will be none (Ctrl-D).
func (l *lines) next(ctx context.Context) (string, error) {
	if l.reading == nil {
		got := make(chan entered, 1)
		l.reading = got
		go func() {
			text, err := l.from.ReadString('\n')
			if text != "" && err == io.EOF {
				err = nil
			}
			got <- entered{strings.TrimRight(text, "\r\n"), err}
		}()
	}
	select {
	case e := <-l.reading:
		l.reading = nil
		return e.text, e.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
