package agent

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// What is kept at most, in bytes: beyond it, the oldest is forgotten.
const (
	maxInMemory = 64 << 20
	maxInFiles  = 1 << 30
)

// shelf keeps texts under names: in a folder, so that they are there still when the conversation is taken up again; in memory where
// there is none, or it cannot be written to. The zero value is ready.
type shelf struct {
	folder string
	names  []string // the oldest first
	texts  map[string]kept
	known  map[[sha256.Size]byte]string
	size   int
	last   int // number
}

// kept is a text on the shelf: it is in the file of its name where text is empty.
type kept struct {
	text string
	size int
	sum  [sha256.Size]byte
}

const (
	keptName = "result-"
	keptFile = ".txt"
)

// open takes the texts that an earlier conversation has left in a folder. What cannot be read is not there.
func (s *shelf) open(folder string) {
	s.folder = folder
	files, _ := filepath.Glob(filepath.Join(folder, keptName+"*"+keptFile))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), keptFile)
		n, err := strconv.Atoi(strings.TrimPrefix(name, keptName))
		info, unknown := os.Stat(file)
		if err != nil || unknown != nil || name != keptName+strconv.Itoa(n) {
			continue
		}
		s.last = max(s.last, n)
		s.add(name, kept{size: int(info.Size())})
	}
	slices.SortFunc(s.names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
}

// put keeps a text, and returns its name: the same for the same text.
func (s *shelf) put(text string) (name string) {
	sum := sha256.Sum256([]byte(text))
	if name, ok := s.known[sum]; ok {
		return name
	}
	s.last++
	name = keptName + strconv.Itoa(s.last)
	k := kept{size: len(text), sum: sum}
	if !s.write(name, text) {
		k.text = text
	}
	s.add(name, k)
	s.known[sum] = name
	for most := s.most(); s.size > most && len(s.names) > 1; {
		s.forget(s.names[0])
	}
	return name
}

func (s *shelf) most() int {
	if s.folder != "" {
		return maxInFiles
	}
	return maxInMemory
}

func (s *shelf) file(name string) string { return filepath.Join(s.folder, name+keptFile) }

// write reports whether the text is in a file. It is the user's alone.
func (s *shelf) write(name, text string) bool {
	if s.folder == "" || os.MkdirAll(s.folder, 0o700) != nil {
		return false
	}
	if err := os.WriteFile(s.file(name), []byte(text), 0o600); err != nil {
		_ = os.Remove(s.file(name)) // half of it
		return false
	}
	return true
}

func (s *shelf) add(name string, k kept) {
	if s.texts == nil {
		s.texts, s.known = map[string]kept{}, map[[sha256.Size]byte]string{}
	}
	s.names, s.size = append(s.names, name), s.size+k.size
	s.texts[name] = k
}

func (s *shelf) forget(name string) {
	k := s.texts[name]
	if k.text == "" {
		_ = os.Remove(s.file(name))
	}
	delete(s.texts, name)
	if s.known[k.sum] == name {
		delete(s.known, k.sum)
	}
	s.names, s.size = slices.DeleteFunc(s.names, func(n string) bool { return n == name }), s.size-k.size
}

// get returns the text of a name. The error says which names there are.
func (s *shelf) get(name string) (string, error) {
	k, ok := s.texts[name]
	switch {
	case !ok && len(s.names) == 0:
		return "", fmt.Errorf("nothing is kept of results any more: call their tools again")
	case !ok:
		return "", fmt.Errorf("there is no result %q: there are %s", name, strings.Join(s.names[max(0, len(s.names)-20):], ", "))
	case k.text != "":
		return k.text, nil
	}
	text, err := os.ReadFile(s.file(name))
	if err != nil {
		return "", fmt.Errorf("%s cannot be read any more: call its tool again (%w)", name, err)
	}
	return string(text), nil
}
