package display

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// Saver writes what a result holds to the file of --output: what is binary, or the text where nothing is. With several, the
// second goes to FILE-2, and so on. "-" is standard output.
type Saver struct {
	path     string
	textOnly bool // there is nothing binary
	saved    int
}

// NewSaver returns nil where there is no --output.
func NewSaver(path string, content []mcp.Content) *Saver {
	if path == "" {
		return nil
	}
	s := &Saver{path: path, textOnly: true}
	for _, c := range content {
		if data, _, _ := Binary(c); data != nil {
			s.textOnly = false
		}
	}
	return s
}

func (s *Saver) saveData(stdout io.Writer, data []byte) (file string, err error) {
	s.saved++
	if s.path == "-" {
		_, err = stdout.Write(data)
		return "-", err
	}
	file = s.path
	if s.saved > 1 {
		extension := filepath.Ext(file)
		file = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(file, extension), s.saved, extension)
	}
	if err := os.WriteFile(file, data, 0o666); err != nil {
		return file, fmt.Errorf("saving the result: %w", err)
	}
	return file, nil
}

// SaveContent saves without a word: what is said is JSON.
func SaveContent(content []mcp.Content, s *Saver) error {
	for _, c := range content {
		data, _, _ := Binary(c)
		if s.textOnly {
			data = []byte(c.String())
		}
		if data == nil {
			continue
		}
		if _, err := s.saveData(io.Discard, data); err != nil {
			return err
		}
	}
	return nil
}
