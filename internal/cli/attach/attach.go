// Package attach reads files that go along with a message to a model: texts, images and sounds, up
// to the sizes that models take.
package attach

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/mcp"
)

// Bounds of what a task takes along: a model reads a quarter of a million tokens in a text of that size, and no provider takes
// larger images or sounds.
const (
	MaxText  = 1 << 20
	maxMedia = 5 << 20
)

func Text(what string, text []byte, err error) (string, error) {
	switch {
	case err != nil:
		return "", fmt.Errorf("%s cannot be read: %w", what, err)
	case len(text) > MaxText:
		return "", exit.Usagef("%s holds more than %s, which is more than a model reads: give it a file's name and a server that reads it (--server files)", what, display.Bytes(MaxText))
	case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
		return "", exit.Usagef("%s is no text in UTF-8: give files with -f", what)
	}
	return string(text), nil
}

// File is a file as content, with its name.
func File(path string) ([]mcp.Content, error) {
	info, err := os.Stat(path)
	var failed *os.PathError
	switch {
	case errors.As(err, &failed):
		return nil, failed.Err
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a folder: have the model look into it with --server files")
	case info.Size() > maxMedia:
		return nil, fmt.Errorf("it holds %s, and %s is the most: have the model read it with --server files", display.Bytes(int(info.Size())), display.Bytes(maxMedia))
	}
	data, err := readBounded(path, maxMedia)
	if err != nil {
		return nil, err
	}
	name := mcp.Text(fmt.Sprintf("The file %s:", path))
	switch kind := detectMIMEType(path, data); {
	case strings.HasPrefix(kind, "image/"):
		return []mcp.Content{name, mcp.Image(data, kind)}, nil
	case strings.HasPrefix(kind, "audio/"):
		return []mcp.Content{name, mcp.Audio(data, kind)}, nil
	case kind == "":
		return nil, errors.New("it is neither a text in UTF-8 nor an image (PNG, JPEG, GIF, WebP) nor a sound (WAV, MP3)")
	case len(data) > MaxText:
		return nil, fmt.Errorf("it is a text of %s, and %s is the most: have the model read it with --server files", display.Bytes(len(data)), display.Bytes(MaxText))
	default:
		return []mcp.Content{mcp.Embed(mcp.ResourceContents{URI: fileURI(path), MIMEType: kind, Text: string(data)})}, nil
	}
}

// readBounded reads a file that may grow meanwhile, or be none of the usual ones.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it holds more than %s", display.Bytes(int(limit)))
	}
	return data, err
}

// detectMIMEType is the MIME type of what models take; empty for everything else.
func detectMIMEType(path string, data []byte) string {
	kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "audio/mpeg":
		return kind
	case "audio/wave":
		return "audio/wav"
	}
	extension := strings.ToLower(filepath.Ext(path))
	if extension == ".mp3" && len(data) > 1 && data[0] == 0xff { // one without a tag before its first frame
		return "audio/mpeg"
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return ""
	}
	if known, _, _ := strings.Cut(mime.TypeByExtension(extension), ";"); strings.HasPrefix(known, "text/") || known == "application/json" {
		return known
	}
	return "text/plain"
}

// fileURI is the URI of a file.
func fileURI(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // C:/…
	}
	return (&url.URL{Scheme: "file", Path: slashed}).String()
}
