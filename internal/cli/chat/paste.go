package chat

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/dowel-mcp/dowel/internal/tui/screen"
)

// mentionImage returns the mention of the image file that a pasted text names, which attaches it to
// the message. Terminals paste the path of a file that is dropped on them: as it is, in quotes,
// with backslashes before special characters, or as a file URL. ok is false for every other text.
func mentionImage(pasted string) (mention string, ok bool) {
	for _, path := range pastedPaths(strings.TrimSpace(pasted)) {
		if screen.IsImageName(path) && !strings.ContainsAny(path, "\"\n") && isImage(expandHome(path)) {
			if strings.ContainsAny(path, " \t'()[]{},;") {
				return `@"` + path + `"`, true
			}
			return "@" + path, true
		}
	}
	return "", false
}

// pastedPaths returns the paths that a pasted text may mean.
func pastedPaths(text string) (paths []string) {
	if u, err := url.Parse(text); err == nil && u.Scheme == "file" {
		path := u.Path
		if runtime.GOOS == "windows" { // file:///C:/a.png
			path = strings.TrimPrefix(path, "/")
		}
		if u.Host != "" && u.Host != "localhost" || isShare(path) {
			return nil
		}
		return []string{filepath.FromSlash(path)}
	}
	if isShare(strings.Trim(text, `'"`)) {
		return nil
	}
	for _, quote := range []string{`'`, `"`} {
		if inner, ok := strings.CutPrefix(text, quote); ok && strings.HasSuffix(inner, quote) {
			return []string{strings.TrimSuffix(inner, quote)}
		}
	}
	paths = []string{text}
	if runtime.GOOS != "windows" && strings.Contains(text, `\`) {
		paths = append(paths, unescapeShell(text))
	}
	return paths
}

// isShare reports whether Windows takes a path for one of another machine. To look at it would send
// the user's credentials there before the user has agreed.
func isShare(path string) bool {
	return runtime.GOOS == "windows" && len(path) > 1 && strings.ContainsAny(path[:1], `/\`) && strings.ContainsAny(path[1:2], `/\`)
}

// unescapeShell removes the backslashes that a shell would remove.
func unescapeShell(text string) string {
	var plain strings.Builder
	isEscaped := false
	for _, r := range text {
		if r == '\\' && !isEscaped {
			isEscaped = true
			continue
		}
		isEscaped = false
		plain.WriteRune(r)
	}
	return plain.String()
}

// isImage reports whether a file holds an image.
func isImage(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, 512)
	n, _ := file.Read(head) // an empty file is no image
	return strings.HasPrefix(http.DetectContentType(head[:n]), "image/")
}
