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

// Info is the result of the tool info.
type Info struct {
	Path        string    `json:"path"`
	Absolute    string    `json:"absolute" doc:"The absolute path"`
	URI         string    `json:"uri" doc:"The URI of the resource"`
	Root        string    `json:"root" doc:"The allowed folder that contains it"`
	Kind        string    `json:"kind" doc:"file, folder, link, pipe, socket, device or other"`
	Size        int64     `json:"size" doc:"The size of a file in bytes; for a folder, the number of its entries"`
	Modified    time.Time `json:"modified"`
	Permissions string    `json:"permissions" doc:"In the format of ls -l"`
	Target      string    `json:"target,omitzero" doc:"The target of a link"`
	MIMEType    string    `json:"mimeType,omitzero" doc:"The type of a file, detected from its first bytes and its name"`
	Encoding    string    `json:"encoding,omitzero" doc:"The encoding of a text file"`
}

func (s *Server) infoOf(_ context.Context, in infoIn) (*mcp.CallToolResult, error) {
	p, err := s.roots.parsePath(in.Path)
	if err != nil {
		return nil, err
	}
	info, err := p.root.Lstat(p.name)
	if err != nil {
		return nil, s.explainError(p, err)
	}
	out := Info{
		Path: s.roots.displayPath(p), Absolute: shownName(p.absolutePath()), URI: uriOf(p.absolutePath()), Root: shownName(p.root.path), Kind: kindOf(info.Mode()),
		Size: info.Size(), Modified: info.ModTime().UTC(), Permissions: info.Mode().String(),
	}
	switch out.Kind {
	case kindFile:
		s.describeContent(p, &out)
	case kindLink:
		target, _ := p.root.Readlink(p.name)
		out.Target = shownName(target)
	case kindFolder:
		names, _ := p.firstNames(maxEntries)
		out.Size = int64(len(names))
	}
	return textAndStructured(out.formatSummary(), out)
}

// describeContent fills in the properties of a file's content. A file that cannot be read keeps
// only the properties of its directory entry.
func (s *Server) describeContent(p place, out *Info) {
	f, _, err := s.openFile(p)
	if err != nil {
		return
	}
	defer f.Close()
	if start, err := readSample(f); err == nil {
		k := detectKind(p.name, start)
		out.MIMEType, out.Encoding = k.mimeType, k.encoding
	}
}

func (out *Info) formatSummary() string {
	size := bytesText(out.Size)
	if out.Kind == kindFolder {
		size = fmt.Sprintf("%d entries", out.Size)
	}
	text := fmt.Sprintf("%s %s (in the allowed folder %s)\n%s, modified %s, %s", out.Kind, out.Path, out.Root, size,
		out.Modified.Format(time.RFC3339), out.Permissions)
	if out.Target != "" {
		text += "\ntarget: " + out.Target
	}
	if out.MIMEType != "" {
		text += "\n" + out.MIMEType
	}
	if out.Encoding != "" {
		text += ", " + out.Encoding
	}
	return text
}
