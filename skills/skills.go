// Package skills serves and reads Agent Skills (agentskills.io) over MCP: the extension
// io.modelcontextprotocol/skills (SEP-2640) of revision 2026-07-28. A skill is a folder with the
// file SKILL.md, which tells a model how to do something, and any files that it refers to.
//
// A server serves a folder of skills. Their files are resources under skill://:
//
//	stop, err := skills.Serve(s, "./skills")
//
// A client lists the skills of a server without reading any file, and reads files when it needs
// them:
//
//	for skill, err := range skills.List(ctx, c) {
//		fmt.Println(skill.Name, skill.Description)
//	}
//	text, err := skill.Read(ctx, c, "SKILL.md")
//	form, err := skill.Read(ctx, c, "references/FORMS.md")
//
// A read compares each file with the digest and the size in the skill's entry, and SKILL.md with
// the entry's frontmatter. The server that sends the files also sends the entry. So a verified file
// is what the server has announced, but its text may be malicious.
package skills

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/skills"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// Serve serves the skills in a folder on s: each folder in it, in any depth, that has a
// valid SKILL.md and the name in SKILL.md. s then declares the extension. The folder must
// exist. Each request reads it again, so changes count at once. While clients listen, s
// tells them about changes.
//
// A skill has at most 512 files with together 16 MiB. Names that begin with a dot, symbolic links,
// pipes and devices are left out, and no path leads out of the folder. The default logger of
// log/slog gets the reasons why folders with SKILL.md are not served. All principals see all
// skills. The caller must call stop once s is not used any more.
func Serve(s *server.Server, dir string) (stop func(), err error) {
	folder, err := skills.Open(dir, nil)
	if err != nil {
		return nil, err
	}
	if err := folder.AddTo(s); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return func() { _ = folder.Close() }, nil
}

// ErrUnverified is the error for a file that differs from the entry of its skill, and for an
// invalid entry. If the skill may have changed since the entry was sent, [Get] returns the new one.
var ErrUnverified = skills.ErrUnverified

// Skill is the entry of a skill. The URI identifies it at its server; names need not be unique.
type Skill struct {
	URI         string // of SKILL.md
	Name        string
	Description string
	Files       []string // URIs of all files, SKILL.md included; nil if the server generates them

	entry *skills.Skill
}

func newSkill(entry *skills.Skill) *Skill {
	s := &Skill{URI: entry.URI, Name: entry.Name(), Description: entry.Description(), entry: entry}
	for _, f := range entry.Files {
		s.Files = append(s.Files, f.URI)
	}
	return s
}

// List iterates over the skills of a server, and requests each page when the loop reaches it. It
// reads no file. The list may be incomplete: [Get] finds skills that it lacks. List ends with the
// first error, which matches [errors.ErrUnsupported] if the server does not declare skills.
func List(ctx context.Context, c *client.Client) iter.Seq2[*Skill, error] {
	return func(yield func(*Skill, error) bool) {
		for entry, err := range skills.List(ctx, c) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(newSkill(entry), nil) {
				return
			}
		}
	}
}

// Get returns the present entry of a skill, which need not be in the list. uri is the URI of its
// SKILL.md.
func Get(ctx context.Context, c *client.Client, uri string) (*Skill, error) {
	entry, err := skills.Get(ctx, c, uri)
	if err != nil {
		return nil, err
	}
	return newSkill(entry), nil
}

// Read reads a file of the skill and verifies it. name is the file's URI, or its path relative to
// the folder of the skill. c must be a client of the skill's server. The error matches
// [ErrUnverified] if the file must not be used. The files of a skill without a list of files have
// no digests; only the frontmatter of its SKILL.md is compared.
func (s *Skill) Read(ctx context.Context, c *client.Client, name string) (mcp.ResourceContents, error) {
	if s.entry == nil {
		return mcp.ResourceContents{}, fmt.Errorf("the skill %s does not come from List or Get: %w", s.URI, ErrUnverified)
	}
	return s.entry.Read(ctx, c, name)
}
