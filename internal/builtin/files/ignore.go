package files

import (
	"io"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	ignoreFile = ".gitignore"
	gitFolder  = ".git"
	// maxIgnore bounds a .gitignore file, in bytes. The rest of the file is ignored.
	maxIgnore = 256 << 10
)

// ignores holds the rules of a folder's .gitignore file, and of the folders above it.
type ignores struct {
	above  *ignores
	folder string // within the root, with slashes
	rules  []ignoreRule
}

type ignoreRule struct {
	pattern    string // a doublestar pattern for the path relative to the folder
	keep       bool   // the rule begins with !
	folderOnly bool   // the rule ends with /
}

// ignoresAt returns the rules that apply in a folder, including the rules of all folders above it
// up to the root.
func ignoresAt(p place) *ignores {
	if p.isRoot() {
		return (*ignores)(nil).addFolder(p)
	}
	return ignoresAt(p.parent()).addFolder(p)
}

// addFolder returns the rules for a folder in which above applies. It returns above if the folder
// has no .gitignore file.
func (above *ignores) addFolder(folder place) *ignores {
	at := folder.child(ignoreFile)
	info, err := at.root.Lstat(at.name)
	if err != nil || !info.Mode().IsRegular() {
		return above
	}
	f, err := at.root.OpenFile(at.name, nonblock, 0)
	if err != nil {
		return above
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxIgnore))
	if err != nil {
		return above
	}
	here := &ignores{above: above, folder: folder.slashPath()}
	for line := range strings.SplitSeq(string(content), "\n") {
		if rule, ok := parseIgnore(strings.TrimSuffix(line, "\r")); ok {
			here.rules = append(here.rules, rule)
		}
	}
	return here
}

// braces are ordinary characters in .gitignore files, but not in doublestar patterns.
var braces = strings.NewReplacer("{", `\{`, "}", `\}`)

// parseIgnore parses a line according to gitignore(5). ok is false for a line without a valid rule.
func parseIgnore(line string) (rule ignoreRule, ok bool) {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return rule, false
	}
	line, rule.keep = strings.CutPrefix(line, "!")
	line, rule.folderOnly = strings.CutSuffix(line, "/")
	anchored := strings.Contains(line, "/")
	line = braces.Replace(strings.TrimPrefix(line, "/"))
	if strings.HasSuffix(line, "/**") { // matches the contents of the folder, not the folder itself
		line += "/*"
	}
	if !anchored {
		line = "**/" + line
	}
	rule.pattern = line
	return rule, line != "**/" && doublestar.ValidatePattern(line)
}

// isIgnored reports whether a file or folder is excluded. The last matching rule of the deepest
// folder decides. It must not be called for the contents of an excluded folder.
func (ig *ignores) isIgnored(name string, folder bool) bool {
	for ; ig != nil; ig = ig.above {
		rest := name
		if ig.folder != "." {
			rest = strings.TrimPrefix(name, ig.folder+"/")
		}
		for i := len(ig.rules) - 1; i >= 0; i-- {
			rule := &ig.rules[i]
			if (!rule.folderOnly || folder) && doublestar.MatchUnvalidated(rule.pattern, rest) {
				return !rule.keep
			}
		}
	}
	return false
}

// glob selects files by their paths.
type glob struct{ pattern string }

// newGlob parses a pattern. A pattern without a slash matches names in all folders. It returns
// false if the pattern is invalid.
func newGlob(pattern string) (glob, bool) {
	pattern = strings.TrimPrefix(path.Clean("/"+pattern), "/")
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	}
	return glob{pattern}, doublestar.ValidatePattern(pattern)
}

func (g glob) matchName(name string) bool { return doublestar.MatchUnvalidated(g.pattern, name) }
