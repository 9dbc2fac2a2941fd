package edit

// tomlTable is a table of TOML and where it is written.
type tomlTable struct {
	path     []string // as in its header
	header   int      // its statement; -1 if it has none
	body     []int    // the assignments below the header
	entries  []*tomlEntry
	inArray  bool       // it is, or is in, an entry of an array of tables
	dotted   *tomlTable // the table in whose body its keys stand with dots; nil if it is none of that kind
	prefixes []string   // then: the keys before the dots
}

// tomlEntry is a member of a table: one of value, table and array.
type tomlEntry struct {
	key       string
	statement int // of value
	value     *node
	table     *tomlTable
	array     []*tomlTable
}

func (t *tomlTable) entry(key string) *tomlEntry {
	for _, e := range t.entries {
		if e.key == key {
			return e
		}
	}
	return nil
}

// treeOf arranges statements, of a text that a library has read, as the tables that they make.
func treeOf(statements []statement) *tomlTable {
	root := &tomlTable{header: -1}
	current := root
	for i, st := range statements {
		switch st.kind {
		case assignment:
			current.assign(i, st)
		case tableHeader:
			current = root.descend(st.keys)
			current.header = i
		case arrayHeader:
			current = root.appendTable(st.keys)
			current.header = i
		}
	}
	return root
}

// assign notes an assignment in the body of t.
func (t *tomlTable) assign(i int, st statement) {
	t.body = append(t.body, i)
	at := t
	for n, key := range st.keys[:len(st.keys)-1] {
		e := at.entry(key)
		if e == nil {
			e = &tomlEntry{key: key, table: &tomlTable{path: below(at.path, key), header: -1, inArray: at.inArray, dotted: t, prefixes: st.keys[:n+1]}}
			at.entries = append(at.entries, e)
		}
		if e.table == nil { // the library has refused it
			return
		}
		at = e.table
	}
	key := st.keys[len(st.keys)-1]
	at.entries = append(at.entries, &tomlEntry{key: key, statement: i, value: st.value})
}

// descend returns the table with a header's keys.
func (t *tomlTable) descend(keys []string) *tomlTable {
	at := t
	for _, key := range keys {
		e := at.entry(key)
		if e == nil {
			e = &tomlEntry{key: key, table: &tomlTable{path: below(at.path, key), header: -1, inArray: at.inArray}}
			at.entries = append(at.entries, e)
		}
		switch {
		case e.table != nil:
			at = e.table
		case len(e.array) > 0:
			at = e.array[len(e.array)-1]
		default: // the library has refused it
			return &tomlTable{}
		}
	}
	return at
}

func (t *tomlTable) appendTable(keys []string) *tomlTable {
	parent, key := t.descend(keys[:len(keys)-1]), keys[len(keys)-1]
	e := parent.entry(key)
	if e == nil {
		e = &tomlEntry{key: key}
		parent.entries = append(parent.entries, e)
	}
	table := &tomlTable{path: below(parent.path, key), header: -1, inArray: true}
	e.array = append(e.array, table)
	return table
}

// statements lists all that make t, with what is below it.
func (t *tomlTable) statements(list []int) []int {
	if t.header >= 0 {
		list = append(list, t.header)
	}
	for _, e := range t.entries {
		list = e.statements(list)
	}
	return list
}

func (e *tomlEntry) statements(list []int) []int {
	if e.value != nil {
		return append(list, e.statement)
	}
	if e.table != nil {
		return e.table.statements(list)
	}
	for _, t := range e.array {
		list = t.statements(list)
	}
	return list
}
