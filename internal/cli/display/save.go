package display

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// Saver saves a result to the file of --output: its binary blocks, or the text of a result without
// binary blocks. If it saves several blocks, the second goes to FILE-2, and so on. The path "-" is
// standard output.
type Saver struct {
	path     string
	textOnly bool // save text: the result lacks binary blocks
	saved    int
}

// NewSaver returns a saver of content to path, or nil if path is "".
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

// saveData writes one block to its file, or to stdout, and returns the name of the file.
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

// SaveContent saves content and writes nothing to stdout, for --json. s must not be nil.
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
