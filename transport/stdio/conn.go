package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// Conn returns a connection with one JSON-RPC message a line over any stream of bytes: a pipe, a Unix socket, TCP. A line
// of more than maxMessage bytes (0: [transport.DefaultMaxMessage]) is skipped and reported; empty lines are skipped.
func Conn(rwc io.ReadWriteCloser, maxMessage int) transport.Conn {
	if maxMessage <= 0 {
		maxMessage = transport.DefaultMaxMessage
	}
	return &conn{rwc: rwc, in: bufio.NewReaderSize(rwc, 64<<10), max: maxMessage}
}

type conn struct {
	rwc io.ReadWriteCloser
	in  *bufio.Reader
	max int

	mu     sync.Mutex // held while a line is written
	closed sync.Once
	err    error
}

// HalfOpen implements [transport.HalfOpener]: the peer may have stopped writing and still read.
func (c *conn) HalfOpen() bool { return true }

// Read returns the next line that is not empty, without its end.
func (c *conn) Read() ([]byte, error) {
	for {
		line, err := c.line()
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil // the last line may lack its end
		}
		if err != nil {
			return nil, err
		}
	}
}

// line reads up to the end of a line into memory of its own. A line over the limit is read past.
func (c *conn) line() ([]byte, error) {
	var line []byte
	for {
		part, err := c.in.ReadSlice('\n')
		if content(line, part) > c.max {
			return nil, c.tooLong(append(line, part...), err)
		}
		if line == nil && err == nil {
			return bytes.Clone(part), nil
		}
		line = appendLine(line, part)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// content is the length of a line without its end, as far as it has been read.
func content(line, part []byte) int {
	if n := len(part); n > 0 && part[n-1] == '\n' {
		part = part[:n-1]
	}
	if n := len(part); n > 0 && part[n-1] == '\r' {
		part = part[:n-1]
	} else if n := len(line); len(part) == 0 && n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return len(line) + len(part)
}

// appendLine grows in steps of four, since a line that fills the reader's buffer is likely to be much longer.
func appendLine(line, part []byte) []byte {
	if cap(line)-len(line) < len(part) {
		grown := make([]byte, len(line), 4*(len(line)+len(part)))
		copy(grown, line)
		line = grown
	}
	return append(line, part...)
}

// tooLong reads past a line, of which line is the beginning.
func (c *conn) tooLong(line []byte, err error) error {
	const ends = 256 // bytes at either end in which an id is looked for
	n, head := len(line), bytes.Clone(line[:min(ends, len(line))])
	tail := line[max(0, len(line)-ends):]
	for errors.Is(err, bufio.ErrBufferFull) {
		var part []byte
		part, err = c.in.ReadSlice('\n')
		n += len(part)
		tail = append(bytes.Clone(tail), part...)
		tail = tail[max(0, len(tail)-ends):]
	}
	if err != nil && !errors.Is(err, io.EOF) { // which the next Read meets again
		return err
	}
	return transport.TooLarge(int64(n), c.max, head, tail)
}

// Write writes one line. Line breaks within the frame can only be white space of its JSON: they become spaces.
func (c *conn) Write(frame []byte) error {
	blank(frame, '\n')
	blank(frame, '\r')
	frame = append(frame, '\n')
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.rwc.Write(frame); err != nil {
		return fmt.Errorf("%w: %w", mcp.ErrConnection, err)
	}
	return nil
}

func blank(frame []byte, c byte) {
	for {
		i := bytes.IndexByte(frame, c)
		if i < 0 {
			return
		}
		frame[i] = ' '
		frame = frame[i+1:]
	}
}

// Close closes the stream.
func (c *conn) Close() error {
	c.closed.Do(func() { c.err = c.rwc.Close() })
	return c.err
}
