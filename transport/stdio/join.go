package stdio

import (
	"errors"
	"io"
	"sync"
)

// Join makes a stream of a reader and a writer, such as two pipes or the channels of an SSH
// session. The stream can be served by [ServeStream], dialed by client.Dial, or made a connection
// by [Conn].
//
// Close closes w and then r, if they are an io.Closer, and makes Read return. If r is not an
// io.Closer, a goroutine reads it, and ends only when a Read of r returns.
func Join(r io.Reader, w io.Writer) io.ReadWriteCloser {
	in, ok := r.(io.ReadCloser)
	if !ok {
		in = readInGoroutine(r)
	}
	return &joinedStream{Reader: in, Writer: w, in: in}
}

// joinedStream is a reader and a writer. in is the reader.
type joinedStream struct {
	io.Reader
	io.Writer
	in     io.Closer
	closed sync.Once
	err    error
}

// Close implements [io.Closer].
func (s *joinedStream) Close() error {
	s.closed.Do(func() {
		if out, ok := s.Writer.(io.Closer); ok {
			s.err = out.Close()
		}
		s.err = errors.Join(s.err, s.in.Close())
	})
	return s.err
}

// readInGoroutine reads a reader that cannot be interrupted on a goroutine of its own. After Close,
// that goroutine stays in its last Read until input arrives or, if it reads standard input, the
// process ends.
func readInGoroutine(from io.Reader) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, from)
		w.CloseWithError(err)
	}()
	return r
}
