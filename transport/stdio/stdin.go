package stdio

import (
	"io"
	"os"
)

// readInGoroutine reads a file that cannot be interrupted on a goroutine of its own. After Close,
// that goroutine stays in its last Read until input arrives or the process ends.
func readInGoroutine(f *os.File) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, f)
		w.CloseWithError(err)
	}()
	return r
}
