package chat

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/attach"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// mentionPattern matches @path and @"path" at the beginning of a word.
var mentionPattern = regexp.MustCompile(`(?:^|\s)@(?:"([^"]+)"|(\S+))`)

// attachMentions returns the user's text followed by the files that it mentions. An @word that
// does not name a file stays part of the text.
func (c *conversation) attachMentions(text string) ([]mcp.Content, error) {
	content := []mcp.Content{mcp.Text(text)}
	var added []string
	for _, found := range mentionPattern.FindAllStringSubmatch(text, -1) {
		path, ok := resolveMention(found[1], found[2])
		if missing := found[1] + found[2]; !ok && strings.ContainsAny(strings.Trim(missing, "."), "/.") {
			c.view.Note("no file %s: the message is sent as typed", term.Line(missing))
		}
		if !ok || slices.Contains(added, path) {
			continue
		}
		blocks, err := attach.File(path)
		if err != nil {
			return nil, exit.Usagef("@%s: %w", path, err)
		}
		added, content = append(added, path), append(content, blocks...)
	}
	if added != nil {
		c.view.Note("added %s", strings.Join(added, ", "))
	}
	return content, nil
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
