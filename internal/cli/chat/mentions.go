package chat

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/attach"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// attachment is a file or resource that a message mentions.
type attachment struct {
	name string
	read func(ctx context.Context) ([]mcp.Content, error)
}

// attachMentions returns the user's text followed by the files and resources that it mentions. An
// @word that names neither stays part of the text. The content is nil if the user has stopped it.
func (c *conversation) attachMentions(text string) (content []mcp.Content, err error) {
	mentions := agentcmd.FindMentions(text)
	ctx := c.ctx
	if slices.ContainsFunc(mentions, agentcmd.Mention.MayBeResource) {
		var done func()
		ctx, done = c.interrupts.startWork(c.ctx)
		defer done()
	}
	content = []mcp.Content{mcp.Text(text)}
	var added []string
	for _, m := range mentions {
		a, err := c.findAttachment(ctx, m)
		var blocks []mcp.Content
		if err == nil && a.name != "" && !slices.Contains(added, a.name) {
			blocks, err = a.read(ctx)
			added = append(added, a.name)
		}
		if err != nil {
			return nil, c.reportStopped(ctx, err)
		}
		content = append(content, blocks...)
	}
	if added != nil {
		c.view.Note("added %s", strings.Join(added, ", "))
	}
	return content, nil
}

// findAttachment returns the resource or file that a mention names. Without one the name is empty.
func (c *conversation) findAttachment(ctx context.Context, m agentcmd.Mention) (a attachment, err error) {
	if m.MayBeResource() {
		if a, err = c.findResource(ctx, m); err != nil || a.name != "" {
			return a, err
		}
	}
	path, ok := resolveMention(m.Quoted, m.Word)
	if missing := m.Quoted + m.Word; !ok && strings.ContainsAny(strings.Trim(missing, "."), "/.") {
		c.view.Note("no file %s: the message is sent as typed", term.Line(missing))
	}
	if !ok {
		return attachment{}, nil
	}
	return attachment{path, func(context.Context) ([]mcp.Content, error) {
		blocks, err := attach.File(path)
		if err != nil {
			return nil, exit.Usagef("@%s: %w", path, err)
		}
		return blocks, nil
	}}, nil
}

// findResource returns the resource that a mention names. Without one the name is empty.
func (c *conversation) findResource(ctx context.Context, m agentcmd.Mention) (a attachment, err error) {
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return a, err
	}
	ref, ok, err := rt.FindReference(ctx, m)
	if err != nil || !ok {
		return a, err
	}
	return attachment{ref.String(), func(ctx context.Context) ([]mcp.Content, error) {
		c.view.Working("reading " + ref.String() + " …")
		defer c.view.Working("")
		return rt.ReadReference(ctx, ref)
	}}, nil
}

// resolveMention returns the file that a mention names. Punctuation after the name is ignored,
// unless a file has that name.
func resolveMention(quoted, word string) (path string, ok bool) {
	for _, path := range []string{quoted, word, strings.TrimRight(word, ".,;:!?)]}'")} {
		if path == "" {
			continue
		}
		path = expandHome(path)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, true
		}
	}
	return "", false
}

// expandHome replaces a leading ~/ by the user's home folder.
func expandHome(path string) string {
	if rest, ok := strings.CutPrefix(path+"/", "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}
