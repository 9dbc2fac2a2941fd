package files

import (
	"context"
	"fmt"

	"github.com/dowel-mcp/dowel/mcp"
)

type deleteIn struct {
	Path      string `json:"path" doc:"The file, link or folder; of a link, only the link is deleted, not its target"`
	Recursive bool   `json:"recursive,omitzero" doc:"Delete a folder with everything in it"`
}

// Deleted is the result of the tool delete.
type Deleted struct {
	Path string `json:"path"`
	Kind string `json:"kind" doc:"The kind of the deleted entry: file, folder, link …"`
}

func (s *Server) deletePath(_ context.Context, in deleteIn) (*mcp.CallToolResult, error) {
	p, err := s.roots.parsePath(in.Path)
	if err != nil {
		return nil, err
	}
	if p.isRoot() {
		return nil, fmt.Errorf("%s is an allowed folder, which cannot be deleted: delete its contents instead", s.roots.displayPath(p))
	}
	info, err := p.root.Lstat(p.name)
	if err != nil {
		return nil, s.explainError(p, err)
	}
	defer s.locks.lockPlace(p)()
	out := Deleted{Path: s.roots.displayPath(p), Kind: kindOf(info.Mode())}
	if info.IsDir() && in.Recursive {
		err = p.root.RemoveAll(p.name)
	} else {
		err = p.root.Remove(p.name)
	}
	if err != nil {
		return nil, s.deleteError(p, err)
	}
	return textAndStructured(fmt.Sprintf("deleted the %s %s", out.Kind, out.Path), out)
}

// deleteError explains why a deletion failed. The usual reason is a folder that is not empty.
func (s *Server) deleteError(p place, err error) error {
	if names, unread := p.firstNames(maxCompared); notEmpty(err) && unread == nil && len(names) > 0 {
		return fmt.Errorf("the folder %s is not empty, it contains %s: set recursive to delete it with its contents", s.roots.displayPath(p), listNames(names, 10))
	}
	return s.explainError(p, err)
}
