package shell

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// output collects the output of commands and keeps its beginning and its end. It counts characters,
// not bytes.
type output struct {
	half    int // how many characters are kept at each end
	head    []byte
	inHead  int    // the number of characters in head
	tail    []byte // text after head; trimTail cuts it to its last half characters
	total   int    // the number of characters since takeNew
	partial []byte // the first bytes of an incomplete character
}

// addBytes adds output. p may hold invalid UTF-8 and may end inside a character.
func (o *output) addBytes(p []byte) {
	if len(o.partial) > 0 {
		p = append(o.partial, p...)
		o.partial = nil
	}
	if cut := countIncomplete(p); cut > 0 {
		o.partial = bytes.Clone(p[len(p)-cut:])
		p = p[:len(p)-cut]
	}
	o.appendText(validText(p))
}

func (o *output) appendText(p []byte) {
	o.total += utf8.RuneCount(p)
	if o.inHead < o.half {
		n := 0
		for n < len(p) && o.inHead < o.half {
			_, size := utf8.DecodeRune(p[n:])
			n += size
			o.inHead++
		}
		o.head = append(o.head, p[:n]...)
		p = p[n:]
	}
	o.tail = append(o.tail, p...)
	if len(o.tail) > 8*o.half+4096 {
		o.trimTail()
	}
}

// trimTail cuts tail to its last o.half characters.
func (o *output) trimTail() {
	rest := lastCharacters(o.tail, o.half)
	o.tail = o.tail[:copy(o.tail, rest)]
}

// takeNew returns the output since the last takeNew, and the number of characters omitted in its
// middle.
func (o *output) takeNew() (text string, omitted int) {
	if len(o.partial) > 0 {
		o.appendText([]byte(string(utf8.RuneError)))
	}
	o.trimTail()
	omitted = o.total - o.inHead - utf8.RuneCount(o.tail)
	text = string(o.head)
	if omitted > 0 {
		text += fmt.Sprintf("\n[… %d characters omitted …]\n", omitted)
	}
	text += string(o.tail)
	*o = output{half: o.half}
	return text, omitted
}

// latestText returns at most the last n characters of the output.
func (o *output) latestText(n int) string {
	if in := utf8.RuneCount(o.tail); in < n {
		return string(lastCharacters(o.head, n-in)) + string(o.tail)
	}
	return string(lastCharacters(o.tail, n))
}

// lastCharacters returns at most the last n characters of p.
func lastCharacters(p []byte, n int) []byte {
	at := len(p)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRune(p[:at])
		at -= size
	}
	return p[at:]
}

// countIncomplete returns the number of bytes at the end of p that are an incomplete character.
func countIncomplete(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if end := p[len(p)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune(end) {
				return 0
			}
			return n
		}
	}
	return 0
}

// validText replaces invalid UTF-8 by U+FFFD and NUL by U+2400.
func validText(p []byte) []byte {
	if !utf8.Valid(p) {
		p = bytes.ToValidUTF8(p, []byte("\uFFFD"))
	}
	if bytes.IndexByte(p, 0) >= 0 {
		p = bytes.ReplaceAll(p, []byte{0}, []byte("\u2400"))
	}
	return p
}
