package schema

import (
	"strconv"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// tree is a parsed JSON value that keeps the order of members and the text of
// numbers.
type tree struct {
	kind    byte // '{' '[' '"' '0' 't' 'f' 'n'
	raw     []byte
	text    string // of a string
	members []member
	items   []*tree
}

type member struct {
	name  string
	value *tree
}

// parseTree reads a whole JSON text.
func parseTree(data []byte) (*tree, error) {
	s := &scan{data: data}
	defer s.releaseNames()
	if !s.readAll() {
		return nil, s.syntaxError()
	}
	s.trusted++
	t, _ := s.buildTree(s.skipSpace(0))
	return t, nil
}

// buildTree reads the value at i, which is well-formed.
func (s *scan) buildTree(i int) (*tree, int) {
	start, t := i, &tree{kind: s.byteAt(i)}
	switch t.kind {
	case '{':
		i = s.buildMembers(t, s.skipSpace(i+1))
	case '[':
		i = s.buildItems(t, s.skipSpace(i+1))
	case '"':
		var content rawjson.StringContent
		i, content = s.readString(i)
		t.text = string(s.data[start+1 : i-1])
		if content&rawjson.HasEscape != 0 {
			t.text = string(appendUnescaped(nil, s.data[start:i]))
		}
	case 't', 'f', 'n':
		i = s.skipValue(i)
	default:
		t.kind = '0'
		i = s.skipValue(i)
	}
	t.raw = s.data[start:i:i]
	return t, i
}

func (s *scan) buildMembers(t *tree, i int) int {
	for s.byteAt(i) != '}' {
		name, value := s.readKey(i)
		m := member{name: string(name)}
		m.value, i = s.buildTree(value)
		t.members = append(t.members, m)
		if i = s.skipSpace(i); s.byteAt(i) == ',' {
			i = s.skipSpace(i + 1)
		}
	}
	return i + 1
}

func (s *scan) buildItems(t *tree, i int) int {
	for s.byteAt(i) != ']' {
		var item *tree
		item, i = s.buildTree(i)
		t.items = append(t.items, item)
		if i = s.skipSpace(i); s.byteAt(i) == ',' {
			i = s.skipSpace(i + 1)
		}
	}
	return i + 1
}

// getMember is the member of that name, or nil.
func (t *tree) getMember(name string) *tree {
	for i := range t.members {
		if t.members[i].name == name {
			return t.members[i].value
		}
	}
	return nil
}

// textOf returns the text of a member, or "" without it.
func (t *tree) textOf(name string) string {
	if m := t.getMember(name); m != nil {
		return m.text
	}
	return ""
}

// itemAt is the item of that index, or nil.
func (t *tree) itemAt(text string) *tree {
	i, err := strconv.Atoi(text)
	if err != nil || i < 0 || i >= len(t.items) || text != strconv.Itoa(i) {
		return nil
	}
	return t.items[i]
}
