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

// Limits for taking structured content as covered by the text.
const (
	longScalar  = 40       // characters; a scalar of this length must be in the text
	maxMissing  = 8        // shorter scalars that may be missing
	maxSearched = 64 << 20 // bytes, after which the content counts as missing
)

// textCoversStructured reports whether a result's text says the same as its structured content,
// so that the model needs only the text. It does in two cases:
//
//   - A text block is the same JSON.
//   - The strings and numbers of the JSON are in the text word by word, or in the call's arguments,
//     which the model knows. All strings of 40 characters or more must be there. Of the shorter
//     ones and the numbers, eight may be missing, with at most a tenth of all characters, each
//     value counted once: a text made to be read leaves out a kind or a type, but not many values.
//
// Structured content of less than 40 characters is left out in the first case only: it costs
// little, and a text may hold it by chance. Names of members, true, false and null do not count.
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

// coverage searches the text that the model gets, and the input of its call.
type coverage struct {
	text, input string
	position    int // of the last match in the text; the next scalar mostly follows it
	searched    int // bytes
}

var errMissing = errors.New("it is not said")

// coversAll reports whether the text covers JSON.
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

// covers reports whether the text or the call's input holds a string or number. A short one must
// be a word of its own.
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

// findScalar returns the offset of a scalar in text, from from on; -1 if it is missing.
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

// isWholeWord reports whether a scalar between two texts is not part of a longer word or number.
func isWholeWord(before, scalar, behind string) bool {
	inWord := func(r rune, _ int) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	first, last := inWord(utf8.DecodeRuneInString(scalar)), inWord(utf8.DecodeLastRuneInString(scalar))
	return !(first && inWord(utf8.DecodeLastRuneInString(before))) && !(last && inWord(utf8.DecodeRuneInString(behind)))
}

// eachScalar calls visit with each string and number in JSON, in their order, but not with the
// names of members. It returns the error of the JSON or of visit.
func eachScalar(raw []byte, visit func(string) error) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var objects []bool // of the enclosing values, whether each is an object
	name := false      // the next token is the name of a member
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
