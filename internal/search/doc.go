// Package search ranks tools for what a model says that it wants to do.
//
// A model that is in front of hundreds of tools asks in its own words ("open a bug ticket on GitHub") and hopes to find
// github__create_issue. The ranking is BM25F over a tool's names, title, server, description and parameters, on words that
// are split as identifiers are, stemmed, and widened by a table of what is said for what among tools. It needs no network
// and no model, and the same tools and the same query always give the same answer.
//
//	index := search.New(tools)
//	for _, hit := range index.Find("make a folder", 5) {
//		fmt.Println(tools[hit.Tool].Name)
//	}
package search
