// Package search ranks tools by what a model says that it wants to do.
//
// A model in front of hundreds of tools asks in its own words ("open a bug ticket on GitHub") and
// should find github__create_issue. The ranking is BM25F over a tool's names, title, server,
// description and parameters. Identifiers are split into words, words are reduced to stems, and the
// query is widened by a table of synonyms among tools. It needs no network and no model, and is
// deterministic.
//
//	index := search.New(tools)
//	for _, hit := range index.Find("make a folder", 5) {
//		fmt.Println(tools[hit.Tool].Name)
//	}
package search
