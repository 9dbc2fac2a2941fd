package stdio

import (
	"io"
	"os"
)

// pump reads a file that cannot be interrupted in a goroutine of its own. After Close that goroutine stays in its last
// read, which only input or the process's end can finish.
func pump(f *os.File) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, f)
		w.CloseWithError(err)
	}()
	return r
}
