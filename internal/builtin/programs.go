package builtin

import "slices"

// A Program is a server that is no part of dowel, because it needs more than dowel does: a program
// dowel-NAME of the module servers. dowel serve starts it.
type Program struct{ Name, Description string }

var programs = []Program{
	{"data", "analyze and query CSV, TSV, JSON lines and Parquet files"},
	{"sql", "the schema of a PostgreSQL database, and queries that only read"},
	{"github", "issues and files of GitHub"},
	{"screen", "pictures of the screen; the user is asked before each one"},
}

// Programs returns the servers that are programs of their own.
func Programs() []Program { return slices.Clone(programs) }

// IsProgram reports whether a server is a program of its own.
func IsProgram(name string) bool {
	return slices.ContainsFunc(programs, func(p Program) bool { return p.Name == name })
}
