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
	longScalar = 40 // characters: one as long is always looked for
	maxUnsaid  = 8  // shorter ones that may be missing
	maxLooked  = 64 << 20
)

// saysAll reports whether a result's text says what is in its structured content, so that the model need not be given both. It does
//
//   - where a block of it is the same JSON, or
//   - where what is a string or a number there (not the names of members, true, false and null) stands word by word in the text, or
//     in the call's arguments, which the model knows: all strings of 40 characters or more, and the shorter ones and the numbers but
//     for eight at most, and a tenth of the characters, each counted once. (A kind and a type are left out of a text that is made to
//     be read; names and numbers of many things are not.)
//
// What comes to less than 40 characters is never left out for that: it costs little, and may stand in a text by chance.
func saysAll(content []mcp.Content, input, structured json.RawMessage) bool {
	var texts []string
	whole := jsonText{raw: structured}
	for i := range content {
		text := textOf(&content[i])
		if text == "" {
			continue
		}
		if content[i].Type == mcp.ContentText && whole.same(&jsonText{raw: []byte(text)}) {
			return true
		}
		texts = append(texts, text)
	}
	return len(texts) > 0 && (&spoken{text: strings.Join(texts, "\n"), input: string(input)}).all(structured)
}

// spoken is what the model is told.
type spoken struct {
	text, input string
	at          int // of the text: what comes next is most often behind what was found last
	looked      int // bytes
}

var errUnsaid = errors.New("it is not said")

// all reports whether what is in JSON is said.
func (s *spoken) all(structured []byte) bool {
	seen := map[string]bool{}
	length, unsaid, missing := 0, 0, 0
	err := scalars(structured, func(scalar string) error {
		if seen[scalar] || strings.TrimSpace(scalar) == "" {
			return nil
		}
		seen[scalar] = true
		n := utf8.RuneCountInString(scalar)
		length += n
		if s.says(scalar, n >= longScalar) {
			return nil
		}
		missing += n
		if unsaid++; n >= longScalar || unsaid > maxUnsaid || s.looked > maxLooked {
			return errUnsaid
		}
		return nil
	})
	return err == nil && length-missing >= longScalar && missing*10 <= length
}

// says reports whether a string or a number is said: a shorter one as words of its own.
func (s *spoken) says(scalar string, long bool) bool {
	if at := s.find(s.text, scalar, s.at, long); at >= 0 {
		s.at = at
		return true
	}
	if at := s.find(s.text[:min(len(s.text), s.at+len(scalar))], scalar, 0, long); at >= 0 {
		s.at = at
		return true
	}
	return s.find(s.input, scalar, 0, long) >= 0
}

// find returns where a scalar stands in a text; -1 where it does not.
func (s *spoken) find(text, scalar string, from int, long bool) int {
	for from < len(text) && s.looked <= maxLooked {
		at := strings.Index(text[from:], scalar)
		if at < 0 {
			s.looked += len(text) - from
			break
		}
		s.looked += at + len(scalar)
		at += from
		if long || apart(text[:at], scalar, text[at+len(scalar):]) {
			return at
		}
		from = at + 1
	}
	return -1
}

// apart reports whether a scalar between two texts is no part of a longer word or number.
func apart(before, scalar, behind string) bool {
	inWord := func(r rune, _ int) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	first, last := inWord(utf8.DecodeRuneInString(scalar)), inWord(utf8.DecodeLastRuneInString(scalar))
	return !(first && inWord(utf8.DecodeLastRuneInString(before))) && !(last && inWord(utf8.DecodeRuneInString(behind)))
}

// scalars calls visit with each string and number in JSON, in their order, but not with the names of members. The error is of the
// JSON or of visit.
func scalars(raw []byte, visit func(string) error) error {
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
