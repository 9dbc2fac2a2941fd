package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// saver writes what a result holds to the file of --output: what is binary, or the text where nothing is. With several, the
// second goes to FILE-2, and so on. "-" is standard output.
type saver struct {
	path  string
	text  bool // there is nothing binary
	count int
}

// newSaver returns nil where there is no --output.
func newSaver(path string, content []mcp.Content) *saver {
	if path == "" {
		return nil
	}
	s := &saver{path: path, text: true}
	for _, c := range content {
		if data, _, _ := binary(c); data != nil {
			s.text = false
		}
	}
	return s
}

func (s *saver) save(stdout io.Writer, data []byte) (file string, err error) {
	s.count++
	if s.path == "-" {
		_, err = stdout.Write(data)
		return "-", err
	}
	file = s.path
	if s.count > 1 {
		extension := filepath.Ext(file)
		file = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(file, extension), s.count, extension)
	}
	if err := os.WriteFile(file, data, 0o666); err != nil {
		return file, fmt.Errorf("saving the result: %w", err)
	}
	return file, nil
}

// saveAll saves without a word: what is said is JSON.
func saveAll(content []mcp.Content, s *saver) error {
	for _, c := range content {
		data, _, _ := binary(c)
		if s.text {
			data = []byte(c.String())
		}
		if data == nil {
			continue
		}
		if _, err := s.save(io.Discard, data); err != nil {
			return err
		}
	}
	return nil
}
