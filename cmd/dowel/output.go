package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// document writes the one JSON document of a command: as the server sent it, and indented on a terminal.
func (a *app) document(raw json.RawMessage) error {
	if a.stdout.isTerminal() {
		raw = indented(raw)
	}
	_, err := a.stdout.Write(append(raw[:len(raw):len(raw)], '\n'))
	return err
}

// value writes the one JSON document of a command that is dowel's own.
func (a *app) value(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return a.document(raw)
}

func indented(raw json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if json.Indent(&out, raw, "", "  ") != nil {
		return raw
	}
	return out.Bytes()
}

// text writes foreign text, and ends its last line.
func (a *app) text(text string) {
	if text == "" {
		return
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, _ = io.WriteString(a.stdout, a.stdout.clean(text)) // the screen knows when nobody reads
}

// note writes a line of dowel's own among foreign text.
func (a *app) note(format string, args ...any) {
	fmt.Fprintln(a.stdout, a.stdout.dim(line(fmt.Sprintf(format, args...))))
}

// blocks shows content: text as it is, and a line about everything else. What is binary goes to the folder or file of
// --output, where that is given.
func (a *app) blocks(content []mcp.Content, save *saver) error {
	for _, c := range content {
		data, kind, uri := binary(c)
		switch {
		case data != nil:
			if err := a.binary(data, kind, uri, save); err != nil {
				return err
			}
		case c.Type == mcp.ContentText:
			if err := a.savedText(c.Text, save); err != nil {
				return err
			}
		case c.Resource != nil:
			if err := a.savedText(c.Resource.Text, save); err != nil {
				return err
			}
		case c.Link != nil:
			a.link(c.Link)
		default:
			a.note("%s", c.String())
		}
	}
	return nil
}

// binary returns the bytes of a block that is not text, what they are, and the resource's URI.
func binary(c mcp.Content) (data []byte, kind, uri string) {
	switch {
	case c.Type == mcp.ContentImage, c.Type == mcp.ContentAudio:
		data, kind = c.Data, strings.TrimSpace(string(c.Type)+" "+c.MIMEType)
	case c.Resource != nil && c.Resource.Blob != nil:
		data, kind, uri = c.Resource.Blob, strings.TrimSpace("resource "+c.Resource.MIMEType), c.Resource.URI
	default:
		return nil, "", ""
	}
	if data == nil {
		data = []byte{}
	}
	return data, kind, uri
}

func (a *app) binary(data []byte, kind, uri string, save *saver) error {
	about := strings.TrimSpace(fmt.Sprintf("%s, %s %s", kind, size(len(data)), uri))
	if save == nil {
		a.note("[%s; -o FILE saves it]", about)
		return nil
	}
	file, err := save.save(a.stdout, data)
	if err == nil && file != "-" {
		a.note("[%s → %s]", about, file)
	}
	return err
}

// savedText writes text to the file of --output, where there is nothing binary for it.
func (a *app) savedText(text string, save *saver) error {
	if save == nil || !save.text {
		a.text(text)
		return nil
	}
	_, err := save.save(a.stdout, []byte(text))
	return err
}

func (a *app) link(l *mcp.Resource) {
	about := line(l.URI)
	if l.Name != "" && l.Name != l.URI {
		about += "  " + line(l.Name)
	}
	if l.MIMEType != "" {
		about += "  " + line(l.MIMEType)
	}
	fmt.Fprintf(a.stdout, "%s %s\n", a.stdout.dim("[link]"), about)
}

// size is a number of bytes for people.
func size(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// errorObject is an error as a program reads it.
func errorObject(err error, code int, advice string) map[string]any {
	object := map[string]any{"message": err.Error(), "exit": code}
	if answered := protocolError(err); answered != nil {
		object["code"] = answered.Code
		if answered.Data != nil {
			object["data"] = answered.Data
		}
	}
	if advice != "" {
		object["advice"] = advice
	}
	return object
}
