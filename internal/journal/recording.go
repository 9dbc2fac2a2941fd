package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// MaxRecording is the largest size of a recording, in bytes.
const MaxRecording = 1 << 30

// CreateRecording creates a file for a recording in a folder, which it creates too. Only the user
// can read them.
func CreateRecording(folder string) (*os.File, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	name := "dowel-" + time.Now().Format("20060102-150405.000") + ".jsonl"
	return os.OpenFile(filepath.Join(folder, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// Save writes all records from now on to a file, as lines of JSON, until the recorder is closed. It
// ends with an error if a write fails, or at most bytes.
func (r *Recorder) Save(file *os.File, version string, most int64) error {
	const batch = 256
	var lines bytes.Buffer
	out := json.NewEncoder(&lines)
	out.SetEscapeHTML(false)
	if err := out.Encode(r.BootLine(version)); err != nil {
		return err
	}
	for cursor, written := r.Cursor(0), int64(0); ; {
		n, err := file.Write(lines.Bytes())
		if written += int64(n); err != nil {
			return err
		}
		if written >= most {
			return fmt.Errorf("the recording %s has reached %d MiB and ends", file.Name(), most>>20)
		}
		lines.Reset()
		records, gap, err := cursor.Next(context.Background(), batch)
		if errors.Is(err, errClosed) {
			return nil
		}
		if gap != (Gap{}) {
			err = errors.Join(err, out.Encode(GapLine(gap)))
		}
		for _, record := range records {
			err = errors.Join(err, out.Encode(LineOf(record)))
		}
		if err != nil {
			return err
		}
	}
}
