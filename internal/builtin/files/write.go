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
	Created bool   `json:"created" doc:"Whether the file is new; false if it replaced a file"`
	Size    int    `json:"size" doc:"In bytes"`
}

func (s *Server) writeFile(_ context.Context, in writeIn) (*mcp.CallToolResult, error) {
	if strings.HasSuffix(in.Path, "/") {
		return nil, fmt.Errorf("%s is the path of a folder: give the path of a file; write creates missing folders", in.Path)
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
	at, old, err := s.resolveTarget(p) // again: another call may have created the file before the lock was free
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
