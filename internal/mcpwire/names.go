package mcpwire

import (
	"errors"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
)

// This file checks the names that authors choose against the grammars of the specification.

// CheckMeta returns an error that names an invalid key of a _meta object (basic/index: _meta). It
// does not check values.
func CheckMeta(meta mcp.Meta) error {
	for key := range meta {
		prefix, name, hasPrefix := cutMetaKey(key)
		if hasPrefix && !isMetaPrefix(prefix) || !isMetaName(name) {
			return fmt.Errorf("%q is not a key of _meta: want a name or a prefix and a name, such as com.example/trace; a name "+
				"begins and ends with a letter or digit, and has '-', '_' and '.' only inside", key)
		}
	}
	return nil
}

// CheckExtensions returns an error for an extension whose identifier is invalid (basic/versioning:
// extension negotiation).
func CheckExtensions(extensions []mcp.Extension) error {
	for _, e := range extensions {
		if prefix, name, ok := cutMetaKey(e.ID); !ok || !isMetaPrefix(prefix) || name == "" || !isMetaName(name) {
			return fmt.Errorf("the extension %q has no valid identifier: want a prefix and a name, such as com.example/jobs", e.ID)
		}
	}
	return nil
}

// cutMetaKey cuts a key at its last slash.
func cutMetaKey(key string) (prefix, name string, hasPrefix bool) {
	if i := strings.LastIndexByte(key, '/'); i >= 0 {
		return key[:i], key[i+1:], true
	}
	return "", key, false
}

// isMetaPrefix reports whether text is a list of labels with dots between them.
func isMetaPrefix(text string) bool {
	for label := range strings.SplitSeq(text, ".") {
		if label == "" || !isLetter(label[0]) || !isAlphanumeric(label[len(label)-1]) {
			return false
		}
		for i := range len(label) {
			if !isAlphanumeric(label[i]) && label[i] != '-' {
				return false
			}
		}
	}
	return true
}

// isMetaName reports whether text may follow the prefix of a key. It may be empty.
func isMetaName(text string) bool {
	for i := range len(text) {
		isEdge := i == 0 || i == len(text)-1
		if !isAlphanumeric(text[i]) && (isEdge || strings.IndexByte("-_.", text[i]) < 0) {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isAlphanumeric(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' }

// CheckURI returns an error unless text is an absolute URI (RFC 3986), of any scheme.
func CheckURI(text string) error {
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok || !IsScheme(scheme) || rest == "" {
		return fmt.Errorf("%q is not an absolute URI, such as scheme://name", text)
	}
	hostEnd := 0 // of the authority, the only part that may have brackets
	if strings.HasPrefix(rest, "//") {
		if hostEnd = strings.IndexAny(rest[2:], "/?#") + 2; hostEnd < 2 {
			hostEnd = len(rest)
		}
	}
	fragment := strings.IndexByte(rest, '#')
	for i := range len(rest) {
		c := rest[i]
		switch isHex := func(at int) bool { return at < len(rest) && strings.IndexByte("0123456789abcdefABCDEF", rest[at]) >= 0 }; {
		case isAlphanumeric(c) || strings.IndexByte("-._~:/?@!$&'()*+,;=", c) >= 0:
		case c == '%' && isHex(i+1) && isHex(i+2):
		case c == '#' && i == fragment:
		case (c == '[' || c == ']') && i < hostEnd:
		default:
			return fmt.Errorf("%q has %q where a URI cannot; percent-encode it", text, rest[i:i+1])
		}
	}
	return nil
}

// IsScheme reports whether text can be the scheme of a URI.
func IsScheme(text string) bool {
	for i := range len(text) {
		if !isAlphanumeric(text[i]) && (i == 0 || strings.IndexByte("+-.", text[i]) < 0) {
			return false
		}
	}
	return text != "" && isLetter(text[0])
}

// CheckRoot returns an error unless uri is a file URI whose path is absolute and does not climb
// (client/roots: security considerations).
func CheckRoot(uri string) error {
	if err := CheckURI(uri); err != nil {
		return err
	}
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return err
	case u.Scheme != "file" || u.Opaque != "" || !strings.HasPrefix(u.Path, "/"):
		return fmt.Errorf("%q is not a file URI, such as file:///home/ada/project", uri)
	case strings.ContainsRune(u.Path, 0):
		return fmt.Errorf("the path of %q holds a NUL", uri)
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q has a query or a fragment: want a path alone", uri)
	case slices.Contains(strings.FieldsFunc(u.Path, func(r rune) bool { return r == '/' || r == '\\' }), ".."):
		return fmt.Errorf("the path of %q climbs with ..: give the path that it leads to", uri)
	}
	return nil
}

// CheckMIMEType returns an error unless text is a MIME type, such as image/png.
func CheckMIMEType(text string) error {
	if text == "" {
		return errors.New("the MIME type is missing, such as image/png")
	}
	if media, _, err := mime.ParseMediaType(text); err != nil || !strings.Contains(media, "/") {
		return fmt.Errorf("%q is not a MIME type, such as image/png", text)
	}
	return nil
}
