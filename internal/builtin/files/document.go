package files

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

// document is a text file for editing.
type document struct {
	raw  []byte // the file's content
	mark string // the byte order mark, or ""
	ends string // the line ends of raw: "", endsCRLF or endsMixed
	text string // raw without the byte order mark; LF replaces CR LF if all lines of raw end so
}

// loadDocument reads a file for editing.
func (s *Server) loadDocument(p place) (*document, error) {
	f, info, err := s.openFile(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	shown := s.roots.displayPath(p)
	if info.Size() > MaxEdit {
		return nil, fmt.Errorf("%s has %s: edit can change files of at most %s", shown, bytesText(info.Size()), bytesText(MaxEdit))
	}
	raw, err := readAll(f)
	if err != nil {
		return nil, s.explainError(p, err)
	}
	k := detectKind(p.name, raw[:min(len(raw), sampleSize)])
	switch {
	case k.isUTF16():
		return nil, fmt.Errorf("%s is text in %s, which edit cannot write: convert it to UTF-8 first", shown, k.encoding)
	case !k.isText() || bytes.IndexByte(raw, 0) >= 0:
		return nil, fmt.Errorf("%s is a binary file of %s (%s): edit can change only text", shown, bytesText(info.Size()), k.mimeType)
	}
	return parseDocument(raw), nil
}

// readAll reads a whole file. It fails if the file has more than MaxEdit bytes, which can happen
// even if a smaller size was checked, because the file can grow.
func readAll(f *os.File) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(f, MaxEdit+1))
	if err == nil && len(raw) > MaxEdit {
		err = fmt.Errorf("the file has more than %s", bytesText(MaxEdit))
	}
	return raw, err
}

func parseDocument(raw []byte) *document {
	d := &document{raw: raw, text: string(raw)}
	if rest, ok := strings.CutPrefix(d.text, byteOrder8); ok {
		d.mark, d.text = byteOrder8, rest
	}
	if d.ends = lineEnds(d.text); d.ends == endsCRLF {
		d.text = toLF(d.text)
	}
	return d
}

// encodeText returns the file's content for a changed text.
func (d *document) encodeText(text string) []byte {
	if d.ends == endsCRLF {
		text = toCRLF(toLF(text))
	}
	return []byte(d.mark + text)
}

// adaptLineEnds converts the line ends of s, which comes from the client, to the line ends of
// d.text.
func (d *document) adaptLineEnds(s string) string {
	if d.ends == endsMixed {
		return s
	}
	return toLF(s)
}

// checkUnchanged returns errConflict if the file's content is no longer d.raw.
func (d *document) checkUnchanged(folder *os.Root, name string) error {
	f, err := folder.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return fmt.Errorf("%w: %w", errConflict, rootCause(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(d.raw)) {
		return errConflict
	}
	now, err := readAll(f)
	if err != nil || !bytes.Equal(now, d.raw) {
		return errConflict
	}
	return nil
}

func toLF(s string) string   { return strings.ReplaceAll(s, "\r\n", "\n") }
func toCRLF(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
