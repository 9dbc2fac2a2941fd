package edit

// tomlTable is a table and the places where it is written.
type tomlTable struct {
	path     []string // as in its header
	header   int      // the index of its statement; -1 without a header
	body     []int    // the indexes of the assignments below the header
	entries  []*tomlEntry
	inArray  bool       // it is an entry of an array of tables, or lies below one
	dotted   *tomlTable // the table that holds its members as dotted keys in its body; nil otherwise
	prefixes []string   // for dotted tables: the keys before the last dot
}

// tomlEntry is a member of a table. One of value, table and array is set.
type tomlEntry struct {
	key       string
	statement int // the index of value's statement
	value     *node
	table     *tomlTable
	array     []*tomlTable
}

func (t *tomlTable) findEntry(key string) *tomlEntry {
	for _, e := range t.entries {
		if e.key == key {
			return e
		}
	}
	return nil
}

// buildTomlTree arranges the statements as tables.
func buildTomlTree(statements []statement) *tomlTable {
	root := &tomlTable{header: -1}
	current := root
	for i, st := range statements {
		switch st.kind {
		case assignment:
			current.addAssignment(i, st)
		case tableHeader:
			current = root.openTable(st.keys)
			current.header = i
		case arrayHeader:
			current = root.appendTable(st.keys)
			current.header = i
		}
	}
	return root
}

// addAssignment adds statement i to the body of t.
func (t *tomlTable) addAssignment(i int, st statement) {
	t.body = append(t.body, i)
	at := t
	for n, key := range st.keys[:len(st.keys)-1] {
		e := at.findEntry(key)
		if e == nil {
			e = &tomlEntry{key: key, table: &tomlTable{path: appendKey(at.path, key), header: -1, inArray: at.inArray, dotted: t, prefixes: st.keys[:n+1]}}
			at.entries = append(at.entries, e)
		}
		if e.table == nil { // unreachable: the library rejects such texts
			return
		}
		at = e.table
	}
	key := st.keys[len(st.keys)-1]
	at.entries = append(at.entries, &tomlEntry{key: key, statement: i, value: st.value})
}

// openTable returns the table that a header names, and creates it if necessary.
func (t *tomlTable) openTable(keys []string) *tomlTable {
	at := t
	for _, key := range keys {
		e := at.findEntry(key)
		if e == nil {
			e = &tomlEntry{key: key, table: &tomlTable{path: appendKey(at.path, key), header: -1, inArray: at.inArray}}
			at.entries = append(at.entries, e)
		}
		switch {
		case e.table != nil:
			at = e.table
		case len(e.array) > 0:
			at = e.array[len(e.array)-1]
		default: // unreachable: the library rejects such texts
			return &tomlTable{}
		}
	}
	return at
}

func (t *tomlTable) appendTable(keys []string) *tomlTable {
	parent, key := t.openTable(keys[:len(keys)-1]), keys[len(keys)-1]
	e := parent.findEntry(key)
	if e == nil {
		e = &tomlEntry{key: key}
		parent.entries = append(parent.entries, e)
	}
	table := &tomlTable{path: appendKey(parent.path, key), header: -1, inArray: true}
	e.array = append(e.array, table)
	return table
}

// allStatements appends the indexes of all statements of t and the tables below it.
func (t *tomlTable) allStatements(list []int) []int {
	if t.header >= 0 {
		list = append(list, t.header)
	}
	for _, e := range t.entries {
		list = e.allStatements(list)
	}
	return list
}

func (e *tomlEntry) allStatements(list []int) []int {
	if e.value != nil {
		return append(list, e.statement)
	}
	if e.table != nil {
		return e.table.allStatements(list)
	}
	for _, t := range e.array {
		list = t.allStatements(list)
	}
	return list
}
