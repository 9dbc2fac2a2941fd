package files

import (
	"context"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

type infoIn struct {
	Path string `json:"path" doc:"The file or folder"`
}

// Info is what the tool info returns.
type Info struct {
	Path        string    `json:"path"`
	Absolute    string    `json:"absolute" doc:"The absolute path"`
	URI         string    `json:"uri" doc:"Of the resource"`
	Root        string    `json:"root" doc:"The allowed folder that it is in"`
	Kind        string    `json:"kind" doc:"file, folder, link, pipe, socket, device or other"`
	Size        int64     `json:"size" doc:"Of a file, in bytes; of a folder, how many entries it has"`
	Modified    time.Time `json:"modified"`
	Permissions string    `json:"permissions" doc:"As ls shows them"`
	Target      string    `json:"target,omitzero" doc:"Of a link: where it leads"`
	MIMEType    string    `json:"mimeType,omitzero" doc:"Of a file, by its first bytes and its name"`
	Encoding    string    `json:"encoding,omitzero" doc:"Of a text"`
}

func (s *Server) info(_ context.Context, in infoIn) (*mcp.CallToolResult, error) {
	p, err := s.roots.locate(in.Path)
	if err != nil {
		return nil, err
	}
	info, err := p.root.Lstat(p.name)
	if err != nil {
		return nil, s.explain(p, err)
	}
	out := Info{
		Path: s.roots.show(p), Absolute: shownName(p.path()), URI: uriOf(p.path()), Root: shownName(p.root.path), Kind: kindOf(info.Mode()),
		Size: info.Size(), Modified: info.ModTime().UTC(), Permissions: info.Mode().String(),
	}
	switch out.Kind {
	case kindFile:
		s.content(p, &out)
	case kindLink:
		target, _ := p.root.Readlink(p.name)
		out.Target = shownName(target)
	case kindFolder:
		names, _ := p.names(maxEntries)
		out.Size = int64(len(names))
	}
	return both(out.text(), out)
}

// content says what a file holds. One that cannot be read is described from outside alone.
func (s *Server) content(p place, out *Info) {
	f, _, err := s.openFile(p)
	if err != nil {
		return
	}
	defer f.Close()
	if start, err := sample(f); err == nil {
		k := detect(p.name, start)
		out.MIMEType, out.Encoding = k.mimeType, k.encoding
	}
}

func (out *Info) text() string {
	size := bytesText(out.Size)
	if out.Kind == kindFolder {
		size = fmt.Sprintf("%d entries", out.Size)
	}
	text := fmt.Sprintf("%s %s (in the allowed folder %s)\n%s, modified %s, %s", out.Kind, out.Path, out.Root, size,
		out.Modified.Format(time.RFC3339), out.Permissions)
	if out.Target != "" {
		text += "\nleads to " + out.Target
	}
	if out.MIMEType != "" {
		text += "\n" + out.MIMEType
	}
	if out.Encoding != "" {
		text += ", " + out.Encoding
	}
	return text
}
