package schema

import (
	"bytes"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// names remembers the member names of the objects that a scan is inside of, as
// a stack, so that duplicates are found. It also holds unescaped text.
type names struct {
	stack [][]byte
	text  []byte
}

var namesPool = sync.Pool{New: func() any { return new(names) }}

// mark is a point in the stack to which forget returns.
type mark struct{ names, text int }

func (s *scan) borrowNames() {
	if s.names == nil {
		s.names = namesPool.Get().(*names)
	}
}

// releaseNames returns the memory to the pool. The scan can borrow memory again.
func (s *scan) releaseNames() {
	const keep = 64 << 10 // larger ones are left to the garbage collector
	if s.names == nil {
		return
	}
	clear(s.names.stack)
	s.names.stack, s.names.text = s.names.stack[:0], s.names.text[:0]
	if cap(s.names.stack) <= keep/16 && cap(s.names.text) <= keep {
		namesPool.Put(s.names)
	}
	s.names = nil
}

func (s *scan) markNames() mark {
	if s.names == nil {
		return mark{}
	}
	return mark{len(s.names.stack), len(s.names.text)}
}

// fewNames is how many names of one object are compared one by one as they
// come. The names of larger objects are sorted when the object ends.
const fewNames = 16

// addName adds a name of the object that began at m, and reports false when
// it finds that the object has it already.
func (s *scan) addName(m mark, name []byte) bool {
	s.borrowNames()
	if mine := s.names.stack[m.names:]; len(mine) < fewNames {
		for _, other := range mine {
			if bytes.Equal(other, name) {
				return false
			}
		}
	}
	s.names.stack = append(s.names.stack, name)
	return true
}

// endObject ends the object that began at m, and reports false when its names
// turn out to hold duplicates.
func (s *scan) endObject(m mark) bool {
	if s.names == nil {
		return true
	}
	mine := s.names.stack[m.names:]
	unique := true
	if len(mine) > fewNames {
		slices.SortFunc(mine, bytes.Compare)
		for i := 1; i < len(mine) && unique; i++ {
			unique = !bytes.Equal(mine[i-1], mine[i])
		}
	}
	clear(mine)
	s.names.stack, s.names.text = s.names.stack[:m.names], s.names.text[:m.text]
	return unique
}

// appendUnescaped decodes a well-formed string literal with its quotes.
func appendUnescaped(dst, literal []byte) []byte {
	dst, _ = jsontext.AppendUnquote(dst, literal) // the error reports malformed literals only
	return dst
}
