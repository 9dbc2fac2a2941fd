package files

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxUTF16 bounds files in UTF-16, which are converted as a whole.
const maxUTF16 = 16 << 20

// readSample reads the first bytes of a file.
func readSample(f io.ReaderAt) ([]byte, error) {
	buf := make([]byte, sampleSize)
	n, err := f.ReadAt(buf, 0)
	if err != nil && !isEnd(err) {
		return nil, err
	}
	return buf[:n], nil
}

// textOf returns a file's text in UTF-8. UTF-16 is converted and loses its byte order mark; other
// text is returned as it is.
func textOf(f *os.File, size int64, k kind) (text, error) {
	if !k.isUTF16() {
		return text{f, size}, nil
	}
	if size > maxUTF16 {
		return text{}, fmt.Errorf("the file has %s of text in %s: only files of at most %s are converted from it", bytesText(size), k.encoding, bytesText(maxUTF16))
	}
	raw, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	if err != nil {
		return text{}, err
	}
	decoded := decodeUTF16(raw, k.encoding)
	return text{bytes.NewReader(decoded), int64(len(decoded))}, nil
}

func decodeUTF16(raw []byte, encoding string) []byte {
	var order binary.ByteOrder = binary.LittleEndian
	if encoding == utf16BE {
		order = binary.BigEndian
	}
	raw = raw[2:] // the byte order mark
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = order.Uint16(raw[2*i:])
	}
	var decoded []byte
	for _, r := range utf16.Decode(units) {
		decoded = utf8.AppendRune(decoded, r)
	}
	return decoded
}

// Names of line ends in results. A text without lines, or with LF only, has the name "".
const (
	endsCRLF  = "crlf"
	endsMixed = "mixed"
)

// lineEnds returns the name of the line ends of content.
func lineEnds(content string) string {
	switch crlf := strings.Count(content, "\r\n"); {
	case crlf == 0:
		return ""
	case crlf == strings.Count(content, "\n"):
		return endsCRLF
	}
	return endsMixed
}

// countInvalid counts the bytes that are not valid UTF-8.
func countInvalid(content string) int {
	n := 0
	for i := 0; i < len(content); {
		r, size := utf8.DecodeRuneInString(content[i:])
		if r == utf8.RuneError && size == 1 {
			n++
		}
		i += size
	}
	return n
}
