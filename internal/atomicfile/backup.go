package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"
)

// makeBackup stores content beside target and returns the path of the copy.
func makeBackup(target string, content []byte, info fs.FileInfo) (string, error) {
	stamp := target + "." + time.Now().UTC().Format("20060102-150405")
	path := target + ".bak"
	for n := 1; ; n++ {
		if kept, err := os.ReadFile(path); err == nil && bytes.Equal(kept, content) {
			return path, nil
		}
		err := createCopy(path, content, info)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("cannot keep a copy of %s, which stays unchanged: %w", target, err)
		}
		path = stamp + ".bak"
		if n > 1 {
			path = stamp + "-" + strconv.Itoa(n) + ".bak"
		}
	}
}

// createCopy writes a new file with the mode and owner of another. It never replaces a file.
func createCopy(path string, content []byte, like fs.FileInfo) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, like.Mode().Perm())
	if err != nil {
		return err
	}
	keepOwner(f, like)
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		os.Remove(path)
	}
	return err
}
