package audit

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// smallDisk is a file that takes a number of bytes.
type smallDisk struct {
	bytes.Buffer
	room int
}

func (d *smallDisk) Write(p []byte) (int, error) {
	n := min(len(p), d.room)
	d.room -= n
	d.Buffer.Write(p[:n])
	if n < len(p) {
		return n, errors.New("no space left on device")
	}
	return n, nil
}

func (d *smallDisk) Close() error { return nil }

// A line that the disk has taken only in part spoils no other line, and reaches the other writers.
func TestFullDiskSpoilsOneLine(t *testing.T) {
	disk, other := &smallDisk{room: 18}, new(bytes.Buffer)
	failed := 0
	log := NewLog(WriteAll(&File{file: disk}, other), Options{OnError: func(error) { failed++ }})
	log.Write(Record{Name: "one"})
	log.Write(Record{Name: "two"})
	disk.room = 1000
	log.Write(Record{Name: "three"})
	log.Write(Record{Name: "four"})
	lines := strings.Split(strings.TrimSpace(disk.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], "three") || !strings.Contains(lines[2], "four") {
		t.Errorf("the file has %q", lines)
	}
	for _, name := range []string{"one", "two", "three", "four"} {
		if !strings.Contains(other.String(), name) {
			t.Errorf("%s is missing at the other writer", name)
		}
	}
	if failed != 1 {
		t.Errorf("%d failures are reported, want 1", failed)
	}
}
