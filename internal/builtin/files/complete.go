package files

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// completePath suggests paths for the template's variable: the roots, then the contents of the
// typed folder.
func (s *Server) completePath(_ context.Context, typed string, _ map[string]string) ([]string, error) {
	if decoded, err := url.PathUnescape(typed); err == nil {
		typed = decoded
	}
	if strings.IndexByte(typed, 0) >= 0 {
		return nil, nil
	}
	var all []string
	for _, r := range s.roots {
		if start := variableOf(r.path) + "/"; strings.HasPrefix(start, typed) && start != typed && start != "/" {
			all = append(all, escapePercent(start))
		}
	}
	folder, begin := typed, ""
	if cut := strings.LastIndexByte(typed, '/'); cut >= 0 {
		folder, begin = typed[:cut], typed[cut+1:]
	}
	p, ok := s.placeOf(folder)
	if !ok {
		return all, nil
	}
	children, err := p.listChildren(nil)
	if err != nil {
		return all, nil // a folder that cannot be read has no suggestions
	}
	for _, c := range children {
		name := filepath.Base(c.name)
		if !strings.HasPrefix(name, begin) {
			continue
		}
		path := folder + "/" + name
		if c.mode.IsDir() {
			path += "/"
		}
		all = append(all, escapePercent(path))
	}
	return all, nil
}

// variableOf is the reverse of fromVariable.
func variableOf(path string) string { return strings.TrimPrefix(filepath.ToSlash(path), "/") }

// escapePercent prepares a path for {+path}. The expansion encodes every character that needs it,
// except a percent sign with two hex digits, which it takes for an existing encoding.
func escapePercent(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); {
		r, size := utf8.DecodeRuneInString(path[i:])
		if r == '%' || r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, "%%%02X", path[i])
		} else {
			b.WriteString(path[i : i+size])
		}
		i += size
	}
	return b.String()
}
