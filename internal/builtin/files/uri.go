package files

import (
	"net/url"
	"path/filepath"
	"strings"
)

// Template is the URI template of the resources.
const Template = "file:///{+path}"

const scheme = "file://"

// URI returns the URI under which the server lists the file or folder at an absolute path.
func URI(path string) string { return uriOf(path) }

func uriOf(path string) string {
	var b strings.Builder
	b.WriteString(scheme)
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") { // C:/…
		b.WriteByte('/')
	}
	for i, segment := range strings.Split(slashed, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		// Form encoding encodes all reserved characters, but a space as +.
		b.WriteString(strings.ReplaceAll(url.QueryEscape(segment), "+", "%20"))
	}
	return b.String()
}

// pathOf is the reverse of URI. It also accepts other encodings of the same URI. The path is
// absolute and clean.
func pathOf(uri string) (string, bool) {
	rest, ok := strings.CutPrefix(uri, scheme+"/")
	if !ok {
		return "", false
	}
	path, err := url.PathUnescape(rest)
	if err != nil || strings.IndexByte(path, 0) >= 0 {
		return "", false
	}
	return fromVariable(path)
}

// fromVariable returns the absolute path for a value of the template's variable.
func fromVariable(path string) (string, bool) {
	if local := filepath.FromSlash(path); filepath.VolumeName(local) != "" {
		return filepath.Clean(local), filepath.IsAbs(local)
	}
	local := filepath.FromSlash("/" + path)
	return filepath.Clean(local), filepath.IsAbs(local)
}
