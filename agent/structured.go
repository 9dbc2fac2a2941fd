package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/mcp"
)

// Bounds of what is taken for said in the text of a result.
const (
	longScalar  = 40 // characters: one as long is always looked for
	maxMissing  = 8  // shorter ones that may be missing
	maxSearched = 64 << 20
)

// textCoversStructured reports whether a result's text says what is in its structured content, so that the model need not be given both. It does
//
//   - where a block of it is the same JSON, or
//   - where what is a string or a number there (not the names of members, true, false and null) stands word by word in the text, or
//     in the call's arguments, which the model knows: all strings of 40 characters or more, and the shorter ones and the numbers but
//     for eight at most, and a tenth of the characters, each counted once. (A kind and a type are left out of a text that is made to
//     be read; names and numbers of many things are not.)
//
// What comes to less than 40 characters is never left out for that: it costs little, and may stand in a text by chance.
func textCoversStructured(content []mcp.Content, input, structured json.RawMessage) bool {
	var texts []string
	whole := comparableJSON{raw: structured}
	for i := range content {
		text := blockText(&content[i])
		if text == "" {
			continue
		}
		if content[i].Type == mcp.ContentText && whole.sameValue(&comparableJSON{raw: []byte(text)}) {
			return true
		}
		texts = append(texts, text)
	}
	return len(texts) > 0 && (&coverage{text: strings.Join(texts, "\n"), input: string(input)}).coversAll(structured)
}

// coverage is what the model is told.
type coverage struct {
	text, input string
	position    int // of the text: what comes next is most often behind what was found last
	searched    int // bytes
}

var errMissing = errors.New("it is not said")

// coversAll reports whether what is in JSON is said.
func (s *coverage) coversAll(structured []byte) bool {
	seen := map[string]bool{}
	length, unsaid, missing := 0, 0, 0
	err := eachScalar(structured, func(scalar string) error {
		if seen[scalar] || strings.TrimSpace(scalar) == "" {
			return nil
		}
		seen[scalar] = true
		n := utf8.RuneCountInString(scalar)
		length += n
		if s.covers(scalar, n >= longScalar) {
			return nil
		}
		missing += n
		if unsaid++; n >= longScalar || unsaid > maxMissing || s.searched > maxSearched {
			return errMissing
		}
		return nil
	})
	return err == nil && length-missing >= longScalar && missing*10 <= length
}

// covers reports whether a string or a number is said: a shorter one as words of its own.
func (s *coverage) covers(scalar string, long bool) bool {
	if at := s.findScalar(s.text, scalar, s.position, long); at >= 0 {
		s.position = at
		return true
	}
	if at := s.findScalar(s.text[:min(len(s.text), s.position+len(scalar))], scalar, 0, long); at >= 0 {
		s.position = at
		return true
	}
	return s.findScalar(s.input, scalar, 0, long) >= 0
}

// findScalar returns where a scalar stands in a text; -1 where it does not.
func (s *coverage) findScalar(text, scalar string, from int, long bool) int {
	for from < len(text) && s.searched <= maxSearched {
		at := strings.Index(text[from:], scalar)
		if at < 0 {
			s.searched += len(text) - from
			break
		}
		s.searched += at + len(scalar)
		at += from
		if long || isWholeWord(text[:at], scalar, text[at+len(scalar):]) {
			return at
		}
		from = at + 1
	}
	return -1
}

// isWholeWord reports whether a scalar between two texts is no part of a longer word or number.
func isWholeWord(before, scalar, behind string) bool {
	inWord := func(r rune, _ int) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	first, last := inWord(utf8.DecodeRuneInString(scalar)), inWord(utf8.DecodeLastRuneInString(scalar))
	return !(first && inWord(utf8.DecodeLastRuneInString(before))) && !(last && inWord(utf8.DecodeRuneInString(behind)))
}

// eachScalar calls visit with each string and number in JSON, in their order, but not with the names of members. The error is of the
// JSON or of visit.
func eachScalar(raw []byte, visit func(string) error) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var objects []bool // whether what it is in is an object
	name := false      // what comes next is the name of a member
	for {
		token, err := d.Token()
		switch {
		case err == io.EOF && len(objects) == 0:
			return nil
		case err != nil:
			return err
		case name && token != json.Delim('}'):
			name = false
			continue
		}
		switch token := token.(type) {
		case json.Delim:
			if token == '{' || token == '[' {
				objects = append(objects, token == '{')
			} else {
				objects = objects[:len(objects)-1]
			}
		case string:
			err = visit(token)
		case json.Number:
			err = visit(token.String())
		}
		if err != nil {
			return err
		}
		name = len(objects) > 0 && objects[len(objects)-1]
	}
}
