package files

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

const (
	// maxHashed is the size in bytes up to which files are compared by content; larger ones are
	// compared by size and modification time.
	maxHashed = 1 << 20
	// maxNamed is the number of entries up to which folders are compared by the names in them;
	// larger ones are compared by modification time.
	maxNamed = 10_000
	// racy is the resolution of modification times, with a margin. If a file was modified less than
	// this before it was hashed, a later change may have the same time.
	racy = 2 * time.Second
)

// fingerprint is the state of a file or folder at one moment. The zero value means that it is
// missing or cannot be read.
type fingerprint struct {
	info fs.FileInfo
	sum  string    // checksum of the content or of the names; empty if size and time are compared
	at   time.Time // when sum was computed
}

// differsFrom reports whether the file or folder has changed since before.
func (m fingerprint) differsFrom(before fingerprint) bool {
	switch {
	case m.info == nil || before.info == nil:
		return (m.info == nil) != (before.info == nil)
	case m.sum != "" && before.sum != "":
		return m.sum != before.sum
	}
	return m.sum != before.sum || !m.sameStat(before.info)
}

func (m fingerprint) sameStat(info fs.FileInfo) bool {
	return m.info != nil && os.SameFile(m.info, info) && m.info.Size() == info.Size() && m.info.ModTime().Equal(info.ModTime()) &&
		m.info.Mode().Type() == info.Mode().Type()
}

// takeFingerprint returns the current state of a target. It reuses the checksum in before if the
// metadata has not changed since.
func takeFingerprint(t target, before fingerprint) fingerprint {
	info, err := t.place.root.Stat(t.place.name)
	if err != nil {
		return fingerprint{}
	}
	m := fingerprint{info: info, at: time.Now()}
	if before.sameStat(info) && before.at.Sub(info.ModTime()) > racy {
		m.sum, m.at = before.sum, before.at
		return m
	}
	switch {
	case info.IsDir():
		m.sum = t.place.sumOfNames()
	case info.Mode().IsRegular() && info.Size() <= maxHashed:
		m.sum = t.place.sumOfContent()
	}
	return m
}

func (p place) sumOfContent() string {
	f, err := p.root.OpenFile(p.name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(f, maxHashed+1))
	if err != nil || n > maxHashed {
		return ""
	}
	return string(hash.Sum([]byte("file ")))
}

// sumOfNames returns a checksum of the names and kinds of the entries in a folder, or "" if they
// are too many.
func (p place) sumOfNames() string {
	all, err := p.listChildren(nil)
	if err != nil || len(all) > maxNamed {
		return ""
	}
	hash := sha256.New()
	for _, c := range all {
		fmt.Fprintf(hash, "%s\x00%v\x00", c.name, c.mode)
	}
	return string(hash.Sum([]byte("folder ")))
}
