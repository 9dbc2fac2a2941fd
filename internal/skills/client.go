package skills

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"path"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// Methods of the extension.
var (
	listMethod      = mcp.Method[mcp.ListParams, listResult]{Name: mcpwire.MethodListSkills}
	getMethod       = mcp.Method[uriParams, getResult]{Name: mcpwire.MethodGetSkill}
	directoryMethod = mcp.Method[directoryParams, mcp.ListResourcesResult]{Name: mcpwire.MethodReadDirectory}
)

type listResult struct {
	Skills []*Skill `json:"skills"`
	mcp.Page
}

type getResult struct {
	Skill *Skill `json:"skill"`
}

type uriParams struct {
	URI string `json:"uri"`
}

type directoryParams struct {
	URI    string  `json:"uri"`
	Cursor *string `json:"cursor,omitzero"`
}

// maxPages bounds the pages of one list.
const maxPages = 10_000

// List iterates over the skills of a server, and requests each page when the loop reaches it. It
// reads no file. The list may be incomplete: [Get] finds skills that it lacks. List ends with the
// first error, which matches [errors.ErrUnsupported] if the server does not declare skills.
func List(ctx context.Context, c *client.Client) iter.Seq2[*Skill, error] {
	return func(yield func(*Skill, error) bool) {
		if err := checkDeclared(c); err != nil {
			yield(nil, err)
			return
		}
		var p mcp.ListParams
		for range maxPages {
			res, err := client.Do(ctx, c, listMethod, p)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, s := range res.Skills {
				if s != nil && !yield(s, nil) {
					return
				}
			}
			if res.NextCursor == nil {
				return
			}
			if p.Cursor != nil && *p.Cursor == *res.NextCursor {
				yield(nil, fmt.Errorf("the server repeats the cursor %q: its list of skills would never end", *p.Cursor))
				return
			}
			p.Cursor = res.NextCursor
		}
		yield(nil, fmt.Errorf("the server's list of skills has more than %d pages", maxPages))
	}
}

func checkDeclared(c *client.Client) error {
	if !mcpwire.OffersSkills(c.Server().Capabilities) {
		return fmt.Errorf("the server does not declare skills: %w", errors.ErrUnsupported)
	}
	return nil
}

// Get returns the present entry of a skill, which need not be in the list. uri is the URI of its
// SKILL.md.
func Get(ctx context.Context, c *client.Client, uri string) (*Skill, error) {
	if err := checkDeclared(c); err != nil {
		return nil, err
	}
	res, err := client.Do(ctx, c, getMethod, uriParams{uri}, client.CallOptions{NoCache: true})
	switch {
	case err != nil:
		return nil, err
	case res.Skill == nil || res.Skill.URI != uri:
		return nil, &VerificationError{uri, "the server has sent the entry of another skill"}
	}
	return res.Skill, nil
}

// Directory iterates over the files and folders in a folder of a server, such as a skill's folder.
// Folders have the MIME type inode/directory. It adds nothing to a skill's entry: a file that the
// entry lacks cannot be read with [Skill.Read]. The error matches [errors.ErrUnsupported] if the
// server does not declare directoryRead.
func Directory(ctx context.Context, c *client.Client, uri string) iter.Seq2[mcp.Resource, error] {
	return func(yield func(mcp.Resource, error) bool) {
		var settings struct {
			DirectoryRead bool `json:"directoryRead"`
		}
		raw := c.Server().Capabilities.Extensions[mcpwire.ExtensionSkills]
		if mcp.Decode(raw, &settings) != nil || !settings.DirectoryRead {
			yield(mcp.Resource{}, fmt.Errorf("the server does not declare that it lists folders of skills: %w", errors.ErrUnsupported))
			return
		}
		p := directoryParams{URI: uri}
		for range maxPages {
			res, err := client.Do(ctx, c, directoryMethod, p)
			if err != nil {
				yield(mcp.Resource{}, err)
				return
			}
			for _, r := range res.Resources {
				if !yield(r, nil) {
					return
				}
			}
			if p.Cursor = res.NextCursor; p.Cursor == nil {
				return
			}
		}
		yield(mcp.Resource{}, fmt.Errorf("the folder %s has more than %d pages", uri, maxPages))
	}
}

// Load reads SKILL.md, verifies it, and returns its text with the frontmatter.
func (s *Skill) Load(ctx context.Context, c *client.Client) (string, error) {
	contents, err := s.Read(ctx, c, fileName)
	return contents.Text, err
}

// Read reads a file of the skill from the skill's server. name is the file's URI, or its path
// relative to the skill's folder, such as references/FORMS.md. Size and digest must equal the
// entry's, and the frontmatter of SKILL.md too; otherwise the error is a [*VerificationError]. The
// files of a dynamic skill have no digest.
func (s *Skill) Read(ctx context.Context, c *client.Client, name string) (mcp.ResourceContents, error) {
	if err := s.Check(); err != nil {
		return mcp.ResourceContents{}, err
	}
	uri := s.resolve(name)
	f := s.file(uri)
	if f == nil && (!s.Dynamic || uri == "") {
		return mcp.ResourceContents{}, &VerificationError{name, "it is not a file of the skill " + s.Name()}
	}
	res, err := c.ReadResource(ctx, uri, client.CallOptions{NoCache: true})
	if err != nil {
		return mcp.ResourceContents{}, err
	}
	if len(res.Contents) != 1 {
		return mcp.ResourceContents{}, &VerificationError{uri, fmt.Sprintf("the server has sent %d contents: want one", len(res.Contents))}
	}
	contents := res.Contents[0]
	if err := s.verify(uri, f, &contents); err != nil {
		return mcp.ResourceContents{}, &VerificationError{uri, err.Error()}
	}
	return contents, nil
}

// resolve returns the URI of a file that a URI or a relative path names, or "" if it is outside the
// skill's folder.
func (s *Skill) resolve(name string) string {
	if s.file(name) != nil {
		return name
	}
	relative, isURI := strings.CutPrefix(name, s.root()+"/")
	if isURI {
		unescaped, err := url.PathUnescape(relative)
		if err != nil {
			return ""
		}
		relative = unescaped
	}
	relative = path.Clean(relative)
	if relative == "." || relative == ".." || strings.HasPrefix(relative, "../") || strings.HasPrefix(relative, "/") || strings.Contains(relative, "://") {
		return ""
	}
	return s.root() + "/" + escapePath(relative)
}

// escapePath returns a slash-separated path for a URI.
func escapePath(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}

// verify compares the contents of a file with the entry. f is nil for a dynamic skill.
func (s *Skill) verify(uri string, f *File, contents *mcp.ResourceContents) error {
	data := contents.Blob
	if data == nil {
		data = []byte(contents.Text)
	}
	switch {
	case len(data) > MaxSize:
		return fmt.Errorf("it has more than %d MiB", MaxSize>>20)
	case f != nil && int64(len(data)) != f.Size:
		return fmt.Errorf("it has %d bytes, and the entry of the skill says %d", len(data), f.Size)
	case f != nil && digestOf(data) != f.Digest:
		return errors.New("its digest differs from the entry of the skill")
	case uri != s.URI:
		return nil
	}
	object, err := parseFrontmatter(data)
	switch {
	case err != nil:
		return err
	case !sameFrontmatter(object, s.Frontmatter):
		return errors.New("its frontmatter differs from the entry of the skill")
	}
	contents.Text = string(data) // a server may have sent it as a blob
	return nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
