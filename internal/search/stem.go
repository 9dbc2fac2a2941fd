package search

import "strings"

// stem takes off what grammar added, so that "deleting", "deleted", "deletes" and "deletion" are one. What is left need not
// be a word. It is lighter than Porter's stemmer, which makes one of "organ" and "organization": among tools, nouns are
// close to each other and the wrong one is a wrong tool. Own code, since it is a page, and a library would be one more
// dependency for the gateway.
func stem(w string) string {
	if len(w) < 3 || !ascii(w) {
		return w
	}
	if as, ok := irregular[w]; ok {
		return as
	}
	w = singular(w)
	if as, ok := irregular[w]; ok {
		return as
	}
	w = inflection(w)
	w = derivation(w)
	return ending(w)
}

// irregular words stay, or are another's form. A plural is looked up too when its s is gone.
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

func ascii(w string) bool {
	for i := range len(w) {
		if w[i] >= 0x80 {
			return false
		}
	}
	return true
}

func singular(w string) string {
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

func inflection(w string) string {
	for _, suffix := range []string{"ing", "ed"} {
		rest, ok := strings.CutSuffix(w, suffix)
		if ok && len(rest) >= 3 && strings.ContainsAny(rest, "aeiouy") && !(suffix == "ed" && strings.HasSuffix(rest, "e")) {
			return rest
		}
	}
	return w
}

func derivation(w string) string {
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

// ending brings to one form what spelling writes in several: create and creat(ed), copy and copi(ed), run and runn(ing).
func ending(w string) string {
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
