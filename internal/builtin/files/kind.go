package files

import (
	"bytes"
	"net/http"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// sampleSize is the number of bytes from which the kind of a file is detected.
const sampleSize = 8 << 10

// Encodings of text.
const (
	utf8Text    = "utf-8"
	utf8BOM     = "utf-8 with byte order mark"
	utf16LE     = "utf-16le"
	utf16BE     = "utf-16be"
	notQuite    = "not quite utf-8"
	byteOrder8  = "\xEF\xBB\xBF"
	byteOrderLE = "\xFF\xFE"
	byteOrderBE = "\xFE\xFF"
)

// kind is the kind of a file's content.
type kind struct {
	encoding string // of text; empty for everything else
	mimeType string
}

func (k kind) isText() bool  { return k.encoding != "" }
func (k kind) isUTF16() bool { return k.encoding == utf16LE || k.encoding == utf16BE }
func (k kind) isImage() bool { return !k.isText() && strings.HasPrefix(k.mimeType, "image/") }
func (k kind) isAudio() bool { return !k.isText() && strings.HasPrefix(k.mimeType, "audio/") }

// detectKind detects the kind of a file from its first bytes and, if they are ambiguous, from its
// name.
func detectKind(name string, start []byte) kind {
	if encoding := encodingOf(start); encoding != "" {
		return kind{encoding, textType(name)}
	}
	mimeType := http.DetectContentType(start)
	if known, ok := mediaTypes[strings.ToLower(filepath.Ext(name))]; ok && (mimeType == "application/octet-stream" || mimeType == "application/ogg" || mimeType == "video/mp4") {
		mimeType = known
	}
	mimeType, _, _ = strings.Cut(mimeType, ";")
	if strings.HasPrefix(mimeType, "text/") { // encodingOf found that it is not text, for example because of a NUL
		mimeType = "application/octet-stream"
	}
	return kind{mimeType: mimeType}
}

// encodingOf returns the text encoding of a file that starts with these bytes, or "" if it is
// binary.
func encodingOf(start []byte) string {
	switch {
	case bytes.HasPrefix(start, []byte(byteOrderLE)):
		return utf16LE
	case bytes.HasPrefix(start, []byte(byteOrderBE)):
		return utf16BE
	case bytes.IndexByte(start, 0) >= 0, isMedia(start):
		return ""
	case bytes.HasPrefix(start, []byte(byteOrder8)):
		return utf8BOM
	case utf8.Valid(start[:wholeCharacters(start)]):
		return utf8Text
	case mostlyText(start):
		return notQuite
	}
	return ""
}

// isMedia reports whether the bytes are a known binary format. Some of these have no NUL among
// their first bytes.
func isMedia(start []byte) bool {
	mimeType := http.DetectContentType(start)
	return !strings.HasPrefix(mimeType, "text/") && mimeType != "application/octet-stream" && mimeType != "application/postscript"
}

// mostlyText reports whether bytes that are not UTF-8 look like text in an older encoding.
func mostlyText(start []byte) bool {
	odd := 0
	for _, c := range start {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != 0x1B || c == 0x7F {
			odd += 4
		} else if c >= 0x80 {
			odd++
		}
	}
	return odd*2 < len(start)
}

// wholeCharacters returns the length of b without an incomplete character at its end.
func wholeCharacters(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return len(b) - n
			}
			break
		}
	}
	return len(b)
}

// mediaTypes holds the MIME types of formats that cannot always be detected from their first bytes,
// by file extension.
var mediaTypes = map[string]string{
	".flac": "audio/flac", ".m4a": "audio/mp4", ".aac": "audio/aac", ".oga": "audio/ogg", ".ogg": "audio/ogg", ".opus": "audio/ogg",
	".mp3": "audio/mpeg", ".avif": "image/avif", ".heic": "image/heic", ".tif": "image/tiff", ".tiff": "image/tiff",
}

// textTypes holds the MIME types of text, by file extension. The tables of operating systems
// differ, and some say that .ts is a video.
var textTypes = map[string]string{
	".css": "text/css", ".csv": "text/csv", ".htm": "text/html", ".html": "text/html", ".js": "text/javascript", ".json": "application/json",
	".md": "text/markdown", ".mjs": "text/javascript", ".svg": "image/svg+xml", ".toml": "application/toml", ".xml": "application/xml",
	".yaml": "application/yaml", ".yml": "application/yaml",
}

func textType(name string) string {
	if known, ok := textTypes[strings.ToLower(filepath.Ext(name))]; ok {
		return known
	}
	return "text/plain"
}
