package config

// Values of the key definitions, which says what happens to a tool, prompt, resource template or
// text of instructions that differs from the accepted one.
const (
	// NoteChanges offers it and reports the change.
	NoteChanges = "note"
	// HoldChanges withholds it until the user accepts it.
	HoldChanges = "hold"
)

// readDefinitions reads the key definitions of an entry.
func (e *entryReader) readDefinitions(key string, n *node) {
	var text string
	e.readString(key, n, &text)
	if n.kind == stringNode && !isDefinitionsValue(text) {
		e.errorf(n.at, suggestOrList(text, []string{NoteChanges, HoldChanges}), "definitions cannot be %q", text)
		return
	}
	e.s.Definitions = text
}

func isDefinitionsValue(text string) bool { return text == NoteChanges || text == HoldChanges }

// definitionsChoice is the key definitions at the top level of a file. The zero value is a file
// without it.
type definitionsChoice struct {
	value string
	at    Position
}

// readDefinitionsChoice reads the key definitions at the top level, for the servers without one. A
// project must not choose it for the servers of others.
func (r *fileReader) readDefinitionsChoice(n *node) (c definitionsChoice) {
	switch {
	case n == nil || n.kind == nullNode:
	case r.source.Scope == Project:
		r.warnf(n.at, "write it into the entries of this file's servers, or into the user's file", "definitions has no effect at the top level of a project's file")
	case n.kind != stringNode:
		r.errorf(n.at, `write "note" or "hold"`, "definitions must be a string, not %v", n.kind)
	case !isDefinitionsValue(n.text):
		r.errorf(n.at, suggestOrList(n.text, []string{NoteChanges, HoldChanges}), "definitions cannot be %q", n.text)
	default:
		c = definitionsChoice{n.text, n.at}
	}
	return c
}

// HoldsChanges reports whether changed definitions of a server are withheld: as its entry says,
// else as the user's file says for all servers, else if the server is a project's.
func (set *Set) HoldsChanges(s *Server) bool {
	switch {
	case s.Definitions != "":
		return s.Definitions == HoldChanges
	case set.definitions.value != "":
		return set.definitions.value == HoldChanges
	}
	return s.Scope == Project
}
