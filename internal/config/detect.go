package config

import (
	"path"
	"strings"
)

// detect tells the dialect of a file from its path, else from its keys.
func detect(file string, root *node) *Dialect {
	file = strings.ReplaceAll(file, `\`, "/")
	var best *Dialect
	longest := 0
	for _, d := range dialects {
		for _, template := range append(append([]string{}, d.user...), d.project...) {
			if tail := tailOf(template); len(tail) > longest && endsWith(file, tail) {
				best, longest = d, len(tail)
			}
		}
	}
	if best != nil {
		return best
	}
	for _, d := range []string{"zed", "amp", "codex", "vscode", "goose", "opencode"} {
		if known := lookupDialect(d); root.path(known.Key...) != nil && root.member("mcpServers") == nil {
			if d == "codex" && root.path(known.Key...).is(arrayNode) {
				return lookupDialect("vibe")
			}
			return known
		}
	}
	return lookupDialect(Own)
}

// tailOf is what a template says about the end of a path.
func tailOf(template string) string {
	if _, rest, ok := strings.Cut(template, ": "); ok {
		template = rest
	}
	tail := placeholder.ReplaceAllString(template, "$2")
	if _, rest, ok := strings.Cut(tail, ":/"); ok { // a drive
		tail = rest
	}
	return strings.TrimLeft(tail, "~/")
}

// endsWith reports whether the last parts of a path are those of tail, whose last part may be a pattern.
func endsWith(file, tail string) bool {
	files, tails := strings.Split(file, "/"), strings.Split(tail, "/")
	if tail == "" || len(files) < len(tails) {
		return false
	}
	files = files[len(files)-len(tails):]
	for i, part := range tails {
		if ok, _ := path.Match(part, files[i]); !ok {
			return false
		}
	}
	return true
}
