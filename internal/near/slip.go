package near

import "strings"

// Slip returns which of n names a model can only have meant by one that it wrote with other signs between words, in another case,
// or without what stands before __; -1 where there is none, or more than one.
func Slip(written string, n int, name func(i int) string) int {
	found := -1
	for i := range n {
		full := name(i)
		_, bare, _ := strings.Cut(full, "__")
		if words(full) != words(written) && words(bare) != words(written) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// words is a name without the differences that models lose.
func words(name string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("_-./: ", r) }), "_")
}
