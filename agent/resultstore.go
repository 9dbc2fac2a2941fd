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

// Limits of stored texts, in bytes. Beyond them the oldest text is removed.
const (
	maxInMemory = 64 << 20
	maxInFiles  = 1 << 30
)

// resultStore stores texts under names: in files of a folder, so that a continued conversation
// can still read them, or in memory without a folder or if the folder cannot be written to. The
// zero value is ready and uses memory.
type resultStore struct {
	folder     string
	names      []string // oldest first
	texts      map[string]storedText
	nameBySum  map[[sha256.Size]byte]string
	size       int
	lastNumber int // the number in the last name
}

// storedText is an entry. Its text is in a file if text is empty.
type storedText struct {
	text string
	size int
	sum  [sha256.Size]byte
}

const (
	textPrefix = "result-"
	textSuffix = ".txt"
)

// openFolder adds the texts that an earlier conversation has left in a folder. Unreadable files
// are skipped.
func (s *resultStore) openFolder(folder string) {
	s.folder = folder
	files, _ := filepath.Glob(filepath.Join(folder, textPrefix+"*"+textSuffix))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), textSuffix)
		n, err := strconv.Atoi(strings.TrimPrefix(name, textPrefix))
		info, unknown := os.Stat(file)
		if err != nil || unknown != nil || name != textPrefix+strconv.Itoa(n) {
			continue
		}
		s.lastNumber = max(s.lastNumber, n)
		s.addEntry(name, storedText{size: int(info.Size())})
	}
	slices.SortFunc(s.names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
}

// storeText stores a text and returns its name. The same text gets the same name again.
func (s *resultStore) storeText(text string) (name string) {
	sum := sha256.Sum256([]byte(text))
	if name, ok := s.nameBySum[sum]; ok {
		return name
	}
	s.lastNumber++
	name = textPrefix + strconv.Itoa(s.lastNumber)
	k := storedText{size: len(text), sum: sum}
	if !s.writeFile(name, text) {
		k.text = text
	}
	s.addEntry(name, k)
	s.nameBySum[sum] = name
	for most := s.maxSize(); s.size > most && len(s.names) > 1; {
		s.removeEntry(s.names[0])
	}
	return name
}

func (s *resultStore) maxSize() int {
	if s.folder != "" {
		return maxInFiles
	}
	return maxInMemory
}

func (s *resultStore) filePath(name string) string { return filepath.Join(s.folder, name+textSuffix) }

// writeFile reports whether it has written the text to a file, which only the user may read.
func (s *resultStore) writeFile(name, text string) bool {
	if s.folder == "" || os.MkdirAll(s.folder, 0o700) != nil {
		return false
	}
	if err := os.WriteFile(s.filePath(name), []byte(text), 0o600); err != nil {
		_ = os.Remove(s.filePath(name)) // it may be incomplete
		return false
	}
	return true
}

func (s *resultStore) addEntry(name string, k storedText) {
	if s.texts == nil {
		s.texts, s.nameBySum = map[string]storedText{}, map[[sha256.Size]byte]string{}
	}
	s.names, s.size = append(s.names, name), s.size+k.size
	s.texts[name] = k
}

func (s *resultStore) removeEntry(name string) {
	k := s.texts[name]
	if k.text == "" {
		_ = os.Remove(s.filePath(name))
	}
	delete(s.texts, name)
	if s.nameBySum[k.sum] == name {
		delete(s.nameBySum, k.sum)
	}
	s.names, s.size = slices.DeleteFunc(s.names, func(n string) bool { return n == name }), s.size-k.size
}

// loadText returns a stored text. The error of an unknown name lists the known ones.
func (s *resultStore) loadText(name string) (string, error) {
	k, ok := s.texts[name]
	switch {
	case !ok && len(s.names) == 0:
		return "", fmt.Errorf("nothing is kept of results any more: call their tools again")
	case !ok:
		return "", fmt.Errorf("there is no result %q: there are %s", name, strings.Join(s.names[max(0, len(s.names)-20):], ", "))
	case k.text != "":
		return k.text, nil
	}
	text, err := os.ReadFile(s.filePath(name))
	if err != nil {
		return "", fmt.Errorf("%s cannot be read any more: call its tool again (%w)", name, err)
	}
	return string(text), nil
}
