package uritemplate

import (
	"errors"
	"fmt"
	"strings"
)

// SafePath reports why a matched value must not be joined to a directory as a
// path below it: it is empty, absolute (on Unix or Windows), holds a NUL, or
// has a segment "..". Slashes and backslashes both separate segments, whatever
// the system. It does not look at the file system: a symbolic link can still
// lead out, which os.Root prevents.
func SafePath(value string) error {
	switch {
	case value == "":
		return errors.New("uritemplate: empty path")
	case strings.IndexByte(value, 0) >= 0:
		return fmt.Errorf("uritemplate: path %q holds a NUL", value)
	case value[0] == '/', value[0] == '\\', len(value) > 1 && value[1] == ':' && isAlphanumeric(value[0]):
		return fmt.Errorf("uritemplate: path %q is absolute", value)
	}
	separator := func(r rune) bool { return r == '/' || r == '\\' }
	for segment := range strings.FieldsFuncSeq(value, separator) {
		if segment == ".." {
			return fmt.Errorf("uritemplate: path %q leads upwards", value)
		}
	}
	return nil
}
