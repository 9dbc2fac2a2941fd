package data

import (
	"cmp"
	"context"
	"io/fs"
	"iter"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// maxListed bounds the files and folders that a list visits.
const maxListed = 10_000

// uriPrefix begins the URI of each file.
const uriPrefix = "data:///"

// Description describes a file without reading its rows.
type Description struct {
	Path    string   `json:"path"`
	Format  string   `json:"format"`
	Bytes   int64    `json:"bytes"`
	Columns []string `json:"columns"`
}

func (s *Server) addResources() {
	server.Resource(s.Server, uriPrefix+"{+path}", "The format, the size and the columns of a file.", s.describeFile,
		server.ResourceOptions{
			Name: "table", MIMEType: "application/json",
			Complete: map[string]server.CompleteFunc{"path": s.completePath},
		})
	s.Provide(s.listFiles)
}

func (s *Server) describeFile(ctx context.Context, in struct {
	Path string `uri:"path"`
}) (Description, error) {
	t, err := s.roots.openTable(in.Path)
	if err != nil {
		return Description{}, mcp.ResourceNotFound(server.URI(ctx))
	}
	defer t.file.Close()
	return Description{Path: t.path, Format: t.format, Bytes: t.size, Columns: t.columns}, nil
}

// listFiles yields the files in the first root, sorted by their URIs.
func (s *Server) listFiles(ctx context.Context, after string) iter.Seq2[mcp.Resource, error] {
	return func(yield func(mcp.Resource, error) bool) {
		for _, name := range s.findFiles(ctx) {
			uri := uriPrefix + (&url.URL{Path: name}).EscapedPath()
			if uri > after && !yield(mcp.Resource{URI: uri, Name: name, MIMEType: "application/json"}, nil) {
				return
			}
		}
	}
}

// findFiles returns the paths of the files in the first root, without hidden ones, in the order of
// their URIs. It visits at most maxListed entries.
func (s *Server) findFiles(ctx context.Context) (found []string) {
	visited := 0
	// An error ends the walk of a folder that cannot be read. The others are still listed.
	_ = fs.WalkDir(s.roots[0].FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if visited++; visited > maxListed || ctx.Err() != nil {
			return fs.SkipAll
		}
		if err != nil || name != "." && strings.HasPrefix(entry.Name(), ".") {
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if _, known := formats[strings.ToLower(path.Ext(name))]; known && entry.Type().IsRegular() {
			found = append(found, name)
		}
		return nil
	})
	slices.SortFunc(found, func(a, b string) int {
		return cmp.Compare((&url.URL{Path: a}).EscapedPath(), (&url.URL{Path: b}).EscapedPath())
	})
	return found
}

// completePath suggests files that begin with the typed text, then files that contain it.
func (s *Server) completePath(ctx context.Context, typed string, settled map[string]string) ([]string, error) {
	return server.CompleteFrom(s.findFiles(ctx)...)(ctx, typed, settled)
}
