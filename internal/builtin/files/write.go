package files

import (
	"context"
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

type writeIn struct {
	Path    string `json:"path" doc:"The file"`
	Content string `json:"content" doc:"The whole content, as UTF-8 text"`
}

// Written is the result of the tool write.
type Written struct {
	Path    string `json:"path"`
	Created bool   `json:"created" doc:"Whether the file is new; else it replaced one"`
	Size    int    `json:"size" doc:"In bytes"`
}

func (s *Server) writeFile(_ context.Context, in writeIn) (*mcp.CallToolResult, error) {
	if strings.HasSuffix(in.Path, "/") {
		return nil, fmt.Errorf("%s is the path of a folder: give that of the file; folders are made as needed", in.Path)
	}
	p, err := s.roots.parsePath(in.Path)
	if err != nil {
		return nil, err
	}
	at, _, err := s.resolveTarget(p)
	if err != nil {
		return nil, err
	}
	defer s.locks.lockPlace(at)()
	at, old, err := s.resolveTarget(p) // it may have come while others held the lock
	if err != nil {
		return nil, err
	}
	r := replacement{place: at, old: old, content: []byte(in.Content)}
	if err := r.replaceFile(); err != nil {
		return nil, s.explainError(p, err)
	}
	out := Written{Path: s.roots.displayPath(p), Created: old == nil, Size: len(in.Content)}
	verb := "replaced"
	if out.Created {
		verb = "created"
	}
	return textAndStructured(fmt.Sprintf("%s %s (%s)", verb, out.Path, bytesText(int64(out.Size))), out)
}
