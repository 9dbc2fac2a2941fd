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

// mentionPattern is @path or @"path", at the beginning of a word.
var mentionPattern = regexp.MustCompile(`(?:^|\s)@(?:"([^"]+)"|(\S+))`)

// attachMentions are what the user says, with the files that are named in it behind. A word that names no file is just a word.
func (c *conversation) attachMentions(text string) ([]mcp.Content, error) {
	content := []mcp.Content{mcp.Text(text)}
	var added []string
	for _, found := range mentionPattern.FindAllStringSubmatch(text, -1) {
		path, ok := resolveMention(found[1], found[2])
		if missing := found[1] + found[2]; !ok && strings.ContainsAny(strings.Trim(missing, "."), "/.") {
			c.view.Note("there is no file %s: what you said goes out as it stands", term.Line(missing))
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

// resolveMention finds the file that is meant: what ends a sentence is part of no name, unless there is such a file.
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

// expandHome is a path whose ~ is the user's folder.
func expandHome(path string) string {
	if rest, ok := strings.CutPrefix(path+"/", "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}
