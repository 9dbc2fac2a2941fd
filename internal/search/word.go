package search

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is a run of letters and digits in lower case. A compound such as camelCase or oauth2 has
// parts.
type word struct {
	whole string
	parts []string
}

// splitWords calls yield for each word of a text or an identifier, until yield returns false.
func splitWords(text string, yield func(word) bool) {
	for text != "" {
		run, simple := nextRun(&text)
		switch {
		case run == "":
		case simple:
			if !yield(word{whole: strings.ToLower(run)}) { // the fast path of most words
				return
			}
		case !splitRun(run, yield):
			return
		}
	}
}

// nextRun cuts the next run of letters and digits off a text. simple says that it is ASCII without
// capital letters after the first.
func nextRun(text *string) (run string, simple bool) {
	start, end := -1, len(*text)
	simple = true
	for i, r := range *text {
		if !inWord(r) {
			if start >= 0 {
				end = i
				break
			}
			continue
		}
		if start < 0 {
			start = i
		}
		simple = simple && (r >= 'a' && r <= 'z' || i == start && r >= 'A' && r <= 'Z')
	}
	if start < 0 {
		*text = ""
		return "", false
	}
	run, *text = (*text)[start:end], (*text)[end:]
	return run, simple
}

func inWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// splitRun yields the words of a run. In scripts without spaces each two neighbouring characters
// are a word.
func splitRun(run string, yield func(word) bool) bool {
	first, _ := utf8.DecodeRuneInString(run)
	if !isSpacelessScript(first) {
		end := strings.IndexFunc(run, isSpacelessScript)
		if end < 0 {
			return yield(splitCompound(run))
		}
		return yield(splitCompound(run[:end])) && splitRun(run[end:], yield)
	}
	letters := []rune(run)
	for i, r := range letters {
		if !isSpacelessScript(r) {
			return splitRun(string(letters[i:]), yield)
		}
		alone := i == 0 && (len(letters) == 1 || !isSpacelessScript(letters[1]))
		pair := i+1 < len(letters) && isSpacelessScript(letters[i+1])
		if pair && !yield(word{whole: string(letters[i : i+2])}) || alone && !yield(word{whole: string(r)}) {
			return false
		}
	}
	return true
}

// isSpacelessScript reports whether a character's script is written without spaces.
func isSpacelessScript(r rune) bool {
	return r > 0x2E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// splitCompound splits getHTTPStatus into get, http and status, and base64 into base and 64. A
// single letter is not a word of its own, so OAuth is one word.
func splitCompound(run string) word {
	w := word{whole: strings.ToLower(run)}
	start := 0
	var before, last rune
	cut := func(end int) {
		if part := strings.ToLower(run[start:end]); utf8.RuneCountInString(part) > 1 && part != w.whole {
			w.parts = append(w.parts, part)
		}
	}
	for i, r := range run {
		switch at := findBoundary(before, last, r); {
		case i == 0 || at == none:
		case at == here:
			cut(i)
			start = i
		case at == boundaryBefore:
			if back := i - utf8.RuneLen(last); back > start {
				cut(back)
				start = back
			}
		}
		before, last = last, r
	}
	if start > 0 {
		cut(len(run))
	}
	if len(w.parts) == 1 && len(w.parts[0])+1 == len(w.whole) {
		w.parts = nil // OAuth, iOS, k8s
	}
	return w
}

const (
	none = iota
	here
	boundaryBefore // the last letter belongs to the next part, like the S of HTTPStatus
)

// findBoundary returns where a new part begins in relation to r.
func findBoundary(before, last, r rune) int {
	switch {
	case unicode.IsDigit(r) != unicode.IsDigit(last):
		return here
	case unicode.IsUpper(r) && unicode.IsLower(last):
		return here
	case unicode.IsLower(r) && unicode.IsUpper(last) && unicode.IsUpper(before):
		return boundaryBefore
	}
	return none
}

// stopWords occur in every query and carry no meaning for a search.
var stopWords = set("a an the this that these those it its is are was were be been am do does did done has have had i me my " +
	"mine we us our you your he she they them their his her of to in on at by for from with into onto as and or if then " +
	"than so but not no can could should would will shall may might must need want like please let lets there here what " +
	"which who whom whose when where why how s t re ll ve d m some any such just also only very more most other one " +
	"about between via per etc eg ie using use used when whether while")

func set(words string) map[string]bool {
	all := map[string]bool{}
	for _, w := range strings.Fields(words) {
		all[w] = true
	}
	return all
}
