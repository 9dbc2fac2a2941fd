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

const (
	// MaxText is the most bytes of a text: about 250,000 tokens, more than most models read.
	MaxText = 1 << 20
	// maxMedia is the most bytes of an image or sound. Providers refuse larger ones.
	maxMedia = 5 << 20
)

// Text returns text as a string, after a read that ended with err. It returns an error if err is
// not nil, if text is longer than [MaxText], or if it is not UTF-8 text. source names the origin of
// the text in errors.
func Text(source string, text []byte, err error) (string, error) {
	switch {
	case err != nil:
		return "", fmt.Errorf("%s cannot be read: %w", source, err)
	case len(text) > MaxText:
		return "", exit.Usagef("%s holds more than %s, the limit for a model: name a file in the task instead, and add --server files", source, display.Bytes(MaxText))
	case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
		return "", exit.Usagef("%s is not UTF-8 text: add images and sounds with -f", source)
	}
	return string(text), nil
}

// File reads a file as content for a model: an embedded resource for a text, or the file's name
// followed by an image or sound. It returns an error if the file is too large or of another kind.
func File(path string) ([]mcp.Content, error) {
	info, err := os.Stat(path)
	var failed *os.PathError
	switch {
	case errors.As(err, &failed):
		return nil, failed.Err
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a folder: let the model read it with --server files")
	case info.Size() > maxMedia:
		return nil, fmt.Errorf("it holds %s, and the limit is %s: let the model read it with --server files", display.Bytes(int(info.Size())), display.Bytes(maxMedia))
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
		return nil, errors.New("it is neither UTF-8 text nor an image (PNG, JPEG, GIF, WebP) nor a sound (WAV, MP3)")
	case len(data) > MaxText:
		return nil, fmt.Errorf("it is a text of %s, and the limit is %s: let the model read it with --server files", display.Bytes(len(data)), display.Bytes(MaxText))
	default:
		return []mcp.Content{mcp.Embed(mcp.ResourceContents{URI: fileURI(path), MIMEType: kind, Text: string(data)})}, nil
	}
}

// readBounded reads a file of at most limit bytes. The size that the caller checked may be wrong:
// the file may grow, or be a device or pipe.
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

// detectMIMEType returns the MIME type of a text, or of an image or sound that models accept, and
// "" for other data. The content decides; the file's extension refines the type of a text.
func detectMIMEType(path string, data []byte) string {
	kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "audio/mpeg":
		return kind
	case "audio/wave":
		return "audio/wav"
	}
	extension := strings.ToLower(filepath.Ext(path))
	if extension == ".mp3" && len(data) > 1 && data[0] == 0xff { // an MP3 file without an ID3 tag
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

// fileURI returns the file:// URI of a path.
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
