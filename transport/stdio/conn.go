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
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// Conn returns a connection that carries one JSON-RPC message a line over any stream of bytes: a
// pipe, a Unix socket, TCP. A line of more than maxMessage bytes is skipped, and Read returns a
// [transport.FrameError] for it; 0 means [transport.DefaultMaxMessage]. A line without an end, of
// more than four times the default, ends the connection. Empty lines are skipped silently.
func Conn(rwc io.ReadWriteCloser, maxMessage int) transport.Conn {
	if maxMessage <= 0 {
		maxMessage = transport.DefaultMaxMessage
	}
	return &lineConn{rwc: rwc, in: bufio.NewReaderSize(rwc, 64<<10), max: maxMessage}
}

type lineConn struct {
	rwc io.ReadWriteCloser
	in  *bufio.Reader
	max int

	endless error // the error of all further reads, or nil

	mu     sync.Mutex // held while a line is written
	closed sync.Once
	err    error
}

// HalfOpen implements [transport.HalfOpener]: a peer that has stopped writing may still read.
func (c *lineConn) HalfOpen() bool { return true }

// Read returns the next line that is not empty, without its line break.
func (c *lineConn) Read() ([]byte, error) {
	for {
		if c.endless != nil {
			return nil, c.endless
		}
		line, err := c.readLine()
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil // the last line may end without a line break
		}
		if err != nil {
			return nil, err
		}
	}
}

// maxSkipped is the size of a line at which it counts as endless. Larger ones are not read on: a
// program that writes them is broken, and reading them would keep a processor busy.
const maxSkipped = 4 * transport.DefaultMaxMessage

// endlessLineError is the error of Read for a line without an end. The connection is unusable then.
type endlessLineError struct {
	read  int // bytes
	limit int // of a message
}

func (e *endlessLineError) Error() string {
	return fmt.Sprintf("%d MiB arrived without a line break, and a message may have at most %s: "+
		"the program must write one JSON-RPC message a line, and everything else to stderr", e.read>>20, formatSize(e.limit))
}

func formatSize(n int) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// readLine reads a line into new memory. It skips a line over the limit.
func (c *lineConn) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := c.in.ReadSlice('\n')
		if contentLength(line, part) > c.max {
			return nil, c.skipLine(append(line, part...), err)
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

// contentLength returns the length of a line without its line break, as far as it has been read.
func contentLength(line, part []byte) int {
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

// appendLine appends part and quadruples the capacity when it grows: a line that fills the
// reader's buffer is usually much longer.
func appendLine(line, part []byte) []byte {
	if cap(line)-len(line) < len(part) {
		grown := make([]byte, len(line), 4*(len(line)+len(part)))
		copy(grown, line)
		line = grown
	}
	return append(line, part...)
}

// skipLine skips the rest of a line and returns the error for it. line is its beginning.
func (c *lineConn) skipLine(line []byte, err error) error {
	const ends = 256 // bytes at either end that are searched for an id
	n, head := len(line), bytes.Clone(line[:min(ends, len(line))])
	tail := line[max(0, len(line)-ends):]
	for errors.Is(err, bufio.ErrBufferFull) {
		var part []byte
		part, err = c.in.ReadSlice('\n')
		n += len(part)
		tail = append(bytes.Clone(tail), part[max(0, len(part)-ends):]...)
		tail = tail[max(0, len(tail)-ends):]
		if n > max(maxSkipped, 2*c.max) {
			c.endless = &endlessLineError{read: n, limit: c.max}
			return c.endless
		}
	}
	if err != nil && !errors.Is(err, io.EOF) { // the next Read returns it again
		return err
	}
	return frames.TooLarge(int64(n), c.max, head, tail)
}

// Write writes one line. Line breaks in frame can only be white space between JSON values, and
// are replaced by spaces.
func (c *lineConn) Write(frame []byte) error {
	replaceByte(frame, '\n')
	replaceByte(frame, '\r')
	frame = append(frame, '\n')
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.rwc.Write(frame); err != nil {
		return fmt.Errorf("%w: %w", mcp.ErrConnection, err)
	}
	return nil
}

func replaceByte(frame []byte, c byte) {
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
func (c *lineConn) Close() error {
	c.closed.Do(func() { c.err = c.rwc.Close() })
	return c.err
}
