package files

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// folderType is the MIME type of folders.
const folderType = "inode/directory"

func (s *Server) addResources() {
	server.Resource(s.Server, Template, "A file in the allowed folders, or the contents of a folder. Subscribe to it to be notified of changes, such as new lines of a log.",
		s.readResource, server.ResourceOptions{
			Name: "file", Title: "File", Complete: map[string]server.CompleteFunc{"path": s.completePath},
		})
	s.Provide(s.listResources)
}

func (s *Server) readResource(ctx context.Context, in struct {
	Path string `uri:"path"`
}) (mcp.ResourceContents, error) {
	notFound := mcp.ResourceNotFound(server.URI(ctx))
	p, ok := s.placeOf(in.Path)
	if !ok {
		return mcp.ResourceContents{}, notFound
	}
	info, err := p.root.Stat(p.name)
	switch {
	case err != nil:
		return mcp.ResourceContents{}, notFound // also if it exists but cannot be reached
	case info.IsDir():
		return s.folderContents(p)
	case !info.Mode().IsRegular():
		return mcp.ResourceContents{}, notFound
	case info.Size() > MaxResource:
		return mcp.ResourceContents{}, mcp.InvalidParams("%s has %s, but a resource has at most %s: use the tool read, which returns it in parts", server.URI(ctx), bytesText(info.Size()), bytesText(MaxResource))
	}
	return s.fileContents(p)
}

// placeOf returns the place for a value of the template's variable. It returns false if the place
// is outside the roots.
func (s *Server) placeOf(variable string) (place, bool) {
	if strings.IndexByte(variable, 0) >= 0 {
		return place{}, false
	}
	path, ok := fromVariable(variable)
	if !ok {
		return place{}, false
	}
	return s.roots.findPlace(path)
}

func (s *Server) fileContents(p place) (mcp.ResourceContents, error) {
	f, _, err := s.openFile(p)
	if err != nil {
		return mcp.ResourceContents{}, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, MaxResource))
	if err != nil {
		return mcp.ResourceContents{}, err
	}
	k := detectKind(p.name, content[:min(len(content), sampleSize)])
	if k.isText() && !k.isUTF16() && utf8.Valid(content) && !slices.Contains(content, 0) {
		return mcp.ResourceContents{MIMEType: k.mimeType, Text: string(content)}, nil
	}
	return mcp.ResourceContents{MIMEType: k.mimeType, Blob: content}, nil
}

// folderContents returns the names in a folder, one per line, with a slash after the names of
// folders.
func (s *Server) folderContents(p place) (mcp.ResourceContents, error) {
	all, err := p.listChildren(nil)
	if err != nil {
		return mcp.ResourceContents{}, err
	}
	var b strings.Builder
	for _, c := range all {
		b.WriteString(oneLine(shownName(filepath.Base(c.name))))
		if c.mode.IsDir() {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
	}
	return mcp.ResourceContents{MIMEType: folderType, Text: b.String()}, nil
}

// listResources yields the top-level entries of the roots, sorted by URI.
func (s *Server) listResources(_ context.Context, after string) iter.Seq2[mcp.Resource, error] {
	return func(yield func(mcp.Resource, error) bool) {
		type entry struct {
			uri string
			child
		}
		var all []entry
		for _, r := range s.roots {
			top, err := place{r, "."}.listChildren(nil)
			if err != nil {
				yield(mcp.Resource{}, fmt.Errorf("the folder %s: %w", r.path, err))
				return
			}
			for _, c := range top {
				if uri := uriOf(c.absolutePath()); uri > after {
					all = append(all, entry{uri, c})
				}
			}
		}
		slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.uri, b.uri) })
		for _, e := range all {
			if r, ok := s.describeResource(e.uri, e.place); ok && !yield(r, nil) {
				return
			}
		}
	}
}

// describeResource describes a file or folder. It returns false for entries of other kinds, and for
// links that lead out of the root.
func (s *Server) describeResource(uri string, p place) (mcp.Resource, bool) {
	info, err := p.root.Stat(p.name)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return mcp.Resource{}, false
	}
	r := mcp.Resource{URI: uri, Name: s.roots.displayPath(p)}
	if info.IsDir() {
		r.MIMEType = folderType
		return r, true
	}
	r.Size, r.MIMEType = new(info.Size()), s.typeOf(p)
	return r, true
}

// typeOf returns the MIME type of a file, or "" if it cannot be read.
func (s *Server) typeOf(p place) string {
	f, err := p.root.OpenFile(p.name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode().Type()&fs.ModeType != 0 {
		return ""
	}
	start, err := readSample(f)
	if err != nil {
		return ""
	}
	return detectKind(p.name, start).mimeType
}
