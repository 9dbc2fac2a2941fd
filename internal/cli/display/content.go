package display

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// WriteContent shows content: text as it is, and a line about everything else. What is binary goes to the folder or file of
// --output, where that is given.
func WriteContent(a *factory.Factory, content []mcp.Content, save *Saver) error {
	for _, c := range content {
		data, kind, uri := Binary(c)
		switch {
		case data != nil:
			if err := writeBinary(a, data, kind, uri, save); err != nil {
				return err
			}
		case c.Type == mcp.ContentText:
			if err := WriteText(a, c.Text, save); err != nil {
				return err
			}
		case c.Resource != nil:
			if err := WriteText(a, c.Resource.Text, save); err != nil {
				return err
			}
		case c.Link != nil:
			writeLink(a, c.Link)
		default:
			a.WriteNote("%s", c.String())
		}
	}
	return nil
}

// Binary returns the bytes of a block that is not text, what they are, and the resource's URI.
func Binary(c mcp.Content) (data []byte, kind, uri string) {
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

func writeBinary(a *factory.Factory, data []byte, kind, uri string, save *Saver) error {
	about := strings.TrimSpace(fmt.Sprintf("%s, %s %s", kind, Bytes(len(data)), uri))
	if save == nil {
		a.WriteNote("[%s; -o FILE saves it]", about)
		return nil
	}
	file, err := save.save(a.Stdout, data)
	if err == nil && file != "-" {
		a.WriteNote("[%s → %s]", about, file)
	}
	return err
}

// WriteText writes text to the file of --output, where there is nothing binary for it.
func WriteText(a *factory.Factory, text string, save *Saver) error {
	if save == nil || !save.text {
		a.WriteText(text)
		return nil
	}
	_, err := save.save(a.Stdout, []byte(text))
	return err
}

func writeLink(a *factory.Factory, l *mcp.Resource) {
	about := term.Line(l.URI)
	if l.Name != "" && l.Name != l.URI {
		about += "  " + term.Line(l.Name)
	}
	if l.MIMEType != "" {
		about += "  " + term.Line(l.MIMEType)
	}
	fmt.Fprintf(a.Stdout, "%s %s\n", a.Stdout.Dim("[link]"), about)
}

// Bytes is a number of bytes for people.
func Bytes(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
