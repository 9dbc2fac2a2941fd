package schema

import "strconv"

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

// parse reads a whole JSON text.
func parse(data []byte) (*tree, error) {
	s := &scan{data: data}
	defer s.release()
	if !s.whole() {
		return nil, s.err()
	}
	s.trusted++
	t, _ := s.tree(s.space(0))
	return t, nil
}

// tree reads the value at i, which is well-formed.
func (s *scan) tree(i int) (*tree, int) {
	start, t := i, &tree{kind: s.at(i)}
	switch t.kind {
	case '{':
		i = s.members(t, s.space(i+1))
	case '[':
		i = s.items(t, s.space(i+1))
	case '"':
		var flags textFlags
		i, flags = s.text(i)
		t.text = string(s.data[start+1 : i-1])
		if flags&hasEscape != 0 {
			t.text = string(appendUnescaped(nil, s.data[start+1:i-1]))
		}
	case 't', 'f', 'n':
		i = s.skip(i)
	default:
		t.kind = '0'
		i = s.skip(i)
	}
	t.raw = s.data[start:i:i]
	return t, i
}

func (s *scan) members(t *tree, i int) int {
	for s.at(i) != '}' {
		name, value := s.key(i)
		m := member{name: string(name)}
		m.value, i = s.tree(value)
		t.members = append(t.members, m)
		if i = s.space(i); s.at(i) == ',' {
			i = s.space(i + 1)
		}
	}
	return i + 1
}

func (s *scan) items(t *tree, i int) int {
	for s.at(i) != ']' {
		var item *tree
		item, i = s.tree(i)
		t.items = append(t.items, item)
		if i = s.space(i); s.at(i) == ',' {
			i = s.space(i + 1)
		}
	}
	return i + 1
}

// get is the member of that name, or nil.
func (t *tree) get(name string) *tree {
	for i := range t.members {
		if t.members[i].name == name {
			return t.members[i].value
		}
	}
	return nil
}

// index is the item of that index, or nil.
func (t *tree) index(text string) *tree {
	i, err := strconv.Atoi(text)
	if err != nil || i < 0 || i >= len(t.items) || text != strconv.Itoa(i) {
		return nil
	}
	return t.items[i]
}
