package search

import "strings"

// stem removes grammatical endings, so that "deleting", "deleted", "deletes" and "deletion" are
// equal. The result need not be a word. It removes less than Porter's stemmer, which makes "organ"
// and "organization" equal: tools have many similar nouns, and a wrong noun is a wrong tool. The
// code is a page long, too little for a dependency of the gateway.
func stem(w string) string {
	if len(w) < 3 || !isLowerASCII(w) {
		return w
	}
	if as, ok := irregular[w]; ok {
		return as
	}
	w = stripPlural(w)
	if as, ok := irregular[w]; ok {
		return as
	}
	w = stripInflection(w)
	w = stripDerivation(w)
	return normalizeEnding(w)
}

// irregular maps words to their stems, also after a plural's s is removed.
var irregular = func() map[string]string {
	all := map[string]string{"people": "person", "children": "child", "ran": "run", "sent": "send", "wrote": "writ",
		"written": "writ", "writing": "writ", "made": "mak", "found": "find", "got": "get", "built": "build", "shown": "show",
		"read": "read", "done": "do", "indices": "index", "indexes": "index"}
	for _, w := range strings.Fields("alias canvas atlas bias lens news kubernetes redis always embed setting string thing " +
		"something anything everything nothing meeting during morning evening spring ping bring king red bed need feed " +
		"speed seed this his axis less css") {
		all[w] = w
	}
	return all
}()

// isLowerASCII reports whether a word, which is in lower case, is ASCII.
func isLowerASCII(w string) bool {
	for i := range len(w) {
		if w[i] >= 0x80 {
			return false
		}
	}
	return true
}

// stripPlural removes a plural ending.
func stripPlural(w string) string {
	if len(w) < 4 && w != "prs" && w != "mrs" && w != "ids" || !strings.HasSuffix(w, "s") {
		return w
	}
	for _, keep := range []string{"ss", "us", "sis"} {
		if strings.HasSuffix(w, keep) {
			return w
		}
	}
	if strings.HasSuffix(w, "ies") && len(w) > 4 {
		return w[:len(w)-3] + "y"
	}
	for _, es := range []string{"sses", "xes", "ches", "shes", "zzes"} {
		if strings.HasSuffix(w, es) {
			return w[:len(w)-2]
		}
	}
	return w[:len(w)-1]
}

// stripInflection removes the ending of a verb's form.
func stripInflection(w string) string {
	for _, suffix := range []string{"ing", "ed"} {
		rest, ok := strings.CutSuffix(w, suffix)
		if ok && len(rest) >= 3 && strings.ContainsAny(rest, "aeiouy") && !(suffix == "ed" && strings.HasSuffix(rest, "e")) {
			return rest
		}
	}
	return w
}

// stripDerivation removes the ending of a derived word.
func stripDerivation(w string) string {
	if rest, ok := strings.CutSuffix(w, "ly"); ok && len(rest) >= 5 {
		w = rest
	}
	if rest, ok := strings.CutSuffix(w, "ment"); ok && len(rest) >= 5 {
		w = rest
	}
	if rest, ok := strings.CutSuffix(w, "ion"); ok && len(rest) >= 4 && strings.HasSuffix(rest, "s") || ok && len(rest) >= 4 && strings.HasSuffix(rest, "t") {
		w = rest
	}
	return w
}

// normalizeEnding removes differences of spelling at the end: create and creat(ed), copy and
// copi(ed), run and runn(ing).
func normalizeEnding(w string) string {
	if n := len(w); n >= 4 && w[n-1] == 'e' {
		w = w[:n-1]
	}
	if rest, ok := strings.CutSuffix(w, "at"); ok && len(rest) >= 5 {
		w = rest // configur(e) and configurat(ion)
	}
	n := len(w)
	if n >= 3 && w[n-1] == w[n-2] && !strings.ContainsRune("aeiou", rune(w[n-1])) {
		// fill stays apart from file
		if n >= 5 || !strings.ContainsRune("lsfz", rune(w[n-1])) {
			w = w[:n-1]
		}
	}
	if n = len(w); n >= 3 && w[n-1] == 'y' && !strings.ContainsRune("aeiou", rune(w[n-2])) {
		w = w[:n-1] + "i"
	}
	return w
}
