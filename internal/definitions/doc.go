// Package definitions compares the definitions that a server gives today with the definitions that
// the user has accepted: of its tools, prompts and resource templates, and its instructions.
//
// A [Record] holds them for one server. The definition seen first is accepted. Another one of the
// same name is a [Change] until the user accepts it. A [Log] keeps the record between runs.
//
//	record, err := definitions.Observe(log, seen, true)
//	for _, d := range seen {
//		if change := record.Check(d); change != nil {
//			fmt.Println(change.Name, "has changed:", change.Lines)
//		}
//	}
//	err = definitions.Accept(log, change)
//
// Definitions are compared by their digests. The order of members, white space and other spellings
// of the same strings and numbers are no change, and neither is _meta, which models and users do
// not read.
package definitions
