package factory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/dowel-mcp/dowel/internal/term"
)

// WriteDocument writes the one JSON document of a command to stdout: unchanged, or indented if
// stdout is a terminal.
func (f *Factory) WriteDocument(raw json.RawMessage) error {
	if f.Stdout.IsTerminal() {
		raw = IndentJSON(raw)
	}
	_, err := f.Stdout.Write(append(raw[:len(raw):len(raw)], '\n'))
	return err
}

// WriteValue encodes v and writes it as [Factory.WriteDocument] does.
func (f *Factory) WriteValue(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return f.WriteDocument(raw)
}

// IndentJSON returns raw indented by two spaces, or unchanged if it is not JSON.
func IndentJSON(raw json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if json.Indent(&out, raw, "", "  ") != nil {
		return raw
	}
	return out.Bytes()
}

// WriteText writes foreign text to stdout and ends its last line. It writes nothing for "".
func (f *Factory) WriteText(text string) {
	if text == "" {
		return
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, _ = io.WriteString(f.Stdout, f.Stdout.Clean(text)) // the screen keeps the error
}

// WriteMessage writes dowel's own words to stdout, on a terminal in lines that end between words.
func (f *Factory) WriteMessage(format string, args ...any) {
	fmt.Fprintln(f.Stdout, f.Stdout.Wrapped(fmt.Sprintf(format, args...)))
}

// WriteNote writes a dimmed line to stdout, to tell dowel's words from foreign text.
func (f *Factory) WriteNote(format string, args ...any) {
	fmt.Fprintln(f.Stdout, f.Stdout.Dim(f.Stdout.Wrapped(term.Line(fmt.Sprintf(format, args...)))))
}

// WriteDocumentOr returns err if it is not nil, else it writes the document.
func (f *Factory) WriteDocumentOr(raw []byte, err error) error {
	if err != nil {
		return err
	}
	return f.WriteDocument(raw)
}

// WriteJSONLine writes a value as one line of JSON. The value must be encodable.
func WriteJSONLine(to io.Writer, value any) {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // the value is encodable, and the stream keeps its error
}
