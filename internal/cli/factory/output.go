package factory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/dowel-mcp/dowel/internal/term"
)

// WriteDocument writes the one JSON document of a command: as the server sent it, and indented on a terminal.
func (f *Factory) WriteDocument(raw json.RawMessage) error {
	if f.Stdout.IsTerminal() {
		raw = IndentJSON(raw)
	}
	_, err := f.Stdout.Write(append(raw[:len(raw):len(raw)], '\n'))
	return err
}

// WriteValue writes the one JSON document of a command that is dowel's own.
func (f *Factory) WriteValue(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return f.WriteDocument(raw)
}

func IndentJSON(raw json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if json.Indent(&out, raw, "", "  ") != nil {
		return raw
	}
	return out.Bytes()
}

// WriteText writes foreign text, and ends its last line.
func (f *Factory) WriteText(text string) {
	if text == "" {
		return
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, _ = io.WriteString(f.Stdout, f.Stdout.Clean(text)) // the screen knows when nobody reads
}

// WriteNote writes a line of dowel's own among foreign text.
func (f *Factory) WriteNote(format string, args ...any) {
	fmt.Fprintln(f.Stdout, f.Stdout.Dim(term.Line(fmt.Sprintf(format, args...))))
}

// WriteDocumentOr writes the document, unless there is none.
func (f *Factory) WriteDocumentOr(raw []byte, err error) error {
	if err != nil {
		return err
	}
	return f.WriteDocument(raw)
}

// WriteJSONLine writes a value as one line of JSON.
func WriteJSONLine(to io.Writer, value any) {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // it is made of what can be encoded, and the stream reports its own failure
}
