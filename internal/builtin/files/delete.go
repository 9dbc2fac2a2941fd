package files

import (
	"context"
	"fmt"

	"github.com/dowel-mcp/dowel/mcp"
)

type deleteIn struct {
	Path      string `json:"path" doc:"The file, link or folder; a link is deleted itself, not what it leads to"`
	Recursive bool   `json:"recursive,omitzero" doc:"Delete a folder with everything in it"`
}

// Deleted is what the tool delete returns.
type Deleted struct {
	Path string `json:"path"`
	Kind string `json:"kind" doc:"What was deleted: file, folder, link …"`
}

func (s *Server) delete(_ context.Context, in deleteIn) (*mcp.CallToolResult, error) {
	p, err := s.roots.locate(in.Path)
	if err != nil {
		return nil, err
	}
	if p.isRoot() {
		return nil, fmt.Errorf("%s is an allowed folder, which is not deleted: delete what is in it", s.roots.show(p))
	}
	info, err := p.root.Lstat(p.name)
	if err != nil {
		return nil, s.explain(p, err)
	}
	defer s.locks.lock(p)()
	out := Deleted{Path: s.roots.show(p), Kind: kindOf(info.Mode())}
	if info.IsDir() && in.Recursive {
		err = p.root.RemoveAll(p.name)
	} else {
		err = p.root.Remove(p.name)
	}
	if err != nil {
		return nil, s.undeleted(p, err)
	}
	return both(fmt.Sprintf("deleted the %s %s", out.Kind, out.Path), out)
}

// undeleted explains why something is still there; most often, because it is a folder with something in it.
func (s *Server) undeleted(p place, err error) error {
	if names, unread := p.names(maxCompared); notEmpty(err) && unread == nil && len(names) > 0 {
		return fmt.Errorf("the folder %s is not empty, it has %s: set recursive to delete all of it", s.roots.show(p), some(names, 10))
	}
	return s.explain(p, err)
}
