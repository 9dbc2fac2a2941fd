package skills

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"mime"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// Bounds of a page. A page of skills ends with the skill that exceeds pageFiles.
const (
	pageFiles    = 500 // files of skills
	pageChildren = 500 // files and folders of a folder
)

func (f *Folder) listSkills(_ context.Context, p mcp.ListParams) (listResult, error) {
	now, err := f.scan()
	if err != nil {
		return listResult{}, err
	}
	res := listResult{Skills: []*Skill{}}
	from, err := positionAfter(p.Cursor, len(now.skills), func(i int) string { return now.skills[i].URI })
	if err != nil {
		return res, err
	}
	files := 0
	for i, s := range now.skills[from:] {
		res.Skills = append(res.Skills, s)
		if files += len(s.Files); files > pageFiles && from+i+1 < len(now.skills) {
			res.NextCursor = &s.URI
			break
		}
	}
	return res, nil
}

// positionAfter returns the index of the first of n sorted URIs after a cursor, which is a URI that
// may have vanished.
func positionAfter(cursor *string, n int, uri func(int) string) (int, error) {
	if cursor == nil {
		return 0, nil
	}
	if !strings.HasPrefix(*cursor, "skill://") {
		return 0, mcp.InvalidParams("the cursor %q is not one of this server's: begin again without one", *cursor)
	}
	i := 0
	for i < n && uri(i) <= *cursor {
		i++
	}
	return i, nil
}

func (f *Folder) getSkill(_ context.Context, p uriParams) (getResult, error) {
	now, err := f.scan()
	if err != nil {
		return getResult{}, err
	}
	for _, s := range now.skills {
		if s.URI == p.URI {
			return getResult{s}, nil
		}
	}
	return getResult{}, mcp.InvalidParams("no skill is served at %s: skills/list lists the skills", p.URI)
}

func (f *Folder) readDirectory(_ context.Context, p directoryParams) (mcp.ListResourcesResult, error) {
	res := mcp.ListResourcesResult{Resources: []mcp.Resource{}}
	now, err := f.scan()
	if err != nil {
		return res, err
	}
	children, found := now.folders[p.URI]
	if !found {
		return res, mcp.InvalidParams("%s is not a folder of a skill: want a URI such as skill://NAME, without a slash at the end", p.URI)
	}
	children = slices.SortedFunc(slices.Values(children), func(a, b child) int { return strings.Compare(a.uri, b.uri) })
	from, err := positionAfter(p.Cursor, len(children), func(i int) string { return children[i].uri })
	if err != nil {
		return res, err
	}
	for _, c := range children[from:min(len(children), from+pageChildren)] {
		res.Resources = append(res.Resources, now.describeChild(c))
	}
	if next := from + pageChildren; next < len(children) {
		res.NextCursor = &children[next-1].uri
	}
	return res, nil
}

// describeChild returns the description of a file or folder.
func (now *snapshot) describeChild(c child) mcp.Resource {
	r := mcp.Resource{URI: c.uri, Name: strings.ToValidUTF8(c.name, "\uFFFD"), MIMEType: "inode/directory"}
	if c.file == nil {
		return r
	}
	r.MIMEType, r.Size = typeOf(c.name), new(c.file.info.Size())
	for _, s := range now.skills {
		if s.URI == c.uri {
			r.Name, r.Description = s.Name(), s.Description()
		}
	}
	return r
}

// provideResources yields the SKILL.md of each skill.
func (f *Folder) provideResources(_ context.Context, after string) iter.Seq2[mcp.Resource, error] {
	return func(yield func(mcp.Resource, error) bool) {
		now, err := f.scan()
		if err != nil {
			yield(mcp.Resource{}, err)
			return
		}
		for _, s := range now.skills {
			if s.URI > after && !yield(now.describeChild(child{fileName, s.URI, now.files[s.URI]}), nil) {
				return
			}
		}
	}
}

// readResource reads a file of a skill. Only a URI that the scan has made leads to a file.
func (f *Folder) readResource(ctx context.Context, _ struct {
	Path string `uri:"path"`
}) (mcp.ResourceContents, error) {
	var p uriParams
	if err := mcp.Decode(server.RequestFrom(ctx).Params, &p); err != nil {
		return mcp.ResourceContents{}, err
	}
	now, err := f.scan()
	if err != nil {
		return mcp.ResourceContents{}, err
	}
	state := now.files[p.URI]
	if state == nil || !now.serves(p.URI) {
		return mcp.ResourceContents{}, fmt.Errorf("no skill has this file: %w", fs.ErrNotExist)
	}
	data, err := readFile(f.root, state.path)
	if err != nil {
		return mcp.ResourceContents{}, err
	}
	c := mcp.ResourceContents{URI: p.URI, MIMEType: typeOf(state.path)}
	if utf8.Valid(data) {
		c.Text = string(data)
	} else {
		c.Blob = data
	}
	return c, nil
}

// serves reports whether a skill has the file of a URI. Files of folders that proved to be no
// skills were read too.
func (now *snapshot) serves(uri string) bool {
	return slices.ContainsFunc(now.skills, func(s *Skill) bool { return strings.HasPrefix(uri, s.root()+"/") })
}

// textTypes holds MIME types of files in skills. The tables of operating systems differ.
var textTypes = map[string]string{
	".css": "text/css", ".csv": "text/csv", ".html": "text/html", ".js": "text/javascript", ".json": "application/json", ".md": "text/markdown",
	".py": "text/x-python", ".sh": "application/x-sh", ".svg": "image/svg+xml", ".toml": "application/toml", ".txt": "text/plain",
	".xml": "application/xml", ".yaml": "application/yaml", ".yml": "application/yaml",
}

// typeOf returns the MIME type of a file by its name.
func typeOf(name string) string {
	extension := strings.ToLower(path.Ext(name))
	if known, ok := textTypes[extension]; ok {
		return known
	}
	if known, _, err := mime.ParseMediaType(mime.TypeByExtension(extension)); err == nil {
		return known
	}
	return "application/octet-stream"
}
