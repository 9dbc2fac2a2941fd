// Package display writes what several commands show in the same way: tables of servers, entries of
// tools and prompts, content blocks of results, problems of the configuration, and numbers for
// people.
package display

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// WriteContent writes content to stdout: text unchanged, and a line about every other block. If
// save is not nil, it saves the binary blocks, or the text of content without binary blocks.
func WriteContent(f *factory.Factory, content []mcp.Content, save *Saver) error {
	for _, c := range content {
		data, kind, uri := Binary(c)
		switch {
		case data != nil:
			if err := writeBinary(f, data, kind, uri, save); err != nil {
				return err
			}
		case c.Type == mcp.ContentText:
			if err := WriteText(f, c.Text, save); err != nil {
				return err
			}
		case c.Resource != nil:
			if err := WriteText(f, c.Resource.Text, save); err != nil {
				return err
			}
		case c.Link != nil:
			writeLink(f, c.Link)
		default:
			f.WriteNote("%s", c.String())
		}
	}
	return nil
}

// Binary returns the bytes of a binary block, a description of them, and the URI if the block is an
// embedded resource. data is nil if the block is not binary.
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

// writeBinary saves a binary block, or writes a line about it if save is nil.
func writeBinary(f *factory.Factory, data []byte, kind, uri string, save *Saver) error {
	about := strings.TrimSpace(fmt.Sprintf("%s, %s %s", kind, Bytes(len(data)), uri))
	if save == nil {
		f.WriteNote("[%s; -o FILE saves it]", about)
		return nil
	}
	file, err := save.saveData(f.Stdout, data)
	if err == nil && file != "-" {
		f.WriteNote("[%s → %s]", about, file)
	}
	return err
}

// WriteText writes text to stdout, or saves it if save wants text. save may be nil.
func WriteText(f *factory.Factory, text string, save *Saver) error {
	if save == nil || !save.textOnly {
		f.WriteText(text)
		return nil
	}
	_, err := save.saveData(f.Stdout, []byte(text))
	return err
}

// writeLink writes a line about a link to a resource.
func writeLink(f *factory.Factory, l *mcp.Resource) {
	about := term.Line(l.URI)
	if l.Name != "" && l.Name != l.URI {
		about += "  " + term.Line(l.Name)
	}
	if l.MIMEType != "" {
		about += "  " + term.Line(l.MIMEType)
	}
	fmt.Fprintf(f.Stdout, "%s %s\n", f.Stdout.Dim("[link]"), about)
}

// Bytes formats a number of bytes for people, such as "1.5 KiB".
func Bytes(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
