package files

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// complete suggests paths for the template's variable: those of the roots, then what is in the folder that was typed.
func (s *Server) complete(_ context.Context, typed string, _ map[string]string) ([]string, error) {
	if decoded, err := url.PathUnescape(typed); err == nil {
		typed = decoded
	}
	if strings.IndexByte(typed, 0) >= 0 {
		return nil, nil
	}
	var all []string
	for _, r := range s.roots {
		if start := variableOf(r.path) + "/"; strings.HasPrefix(start, typed) && start != typed && start != "/" {
			all = append(all, escaped(start))
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
	children, err := p.children(nil)
	if err != nil {
		return all, nil // nothing there to suggest
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
		all = append(all, escaped(path))
	}
	return all, nil
}

// variableOf is the reverse of fromVariable.
func variableOf(path string) string { return strings.TrimPrefix(filepath.ToSlash(path), "/") }

// escaped makes a path fit for {+path}, whose expansion encodes all that must be encoded, but takes a percent sign
// with two digits for an encoding that is there already, and text for UTF-8.
func escaped(path string) string {
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
