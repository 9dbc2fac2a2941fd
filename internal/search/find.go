package search

import (
	"cmp"
	"slices"
)

const (
	// wholeNameBonus raises the score of a tool with a name that the query contains completely:
	// retry_pipeline comes before retry_pipeline_job.
	wholeNameBonus = 0.35
	// partialMatchFactor lowers the score of a tool that matches almost none of the query's
	// concepts.
	partialMatchFactor = 0.5

	// namedServerFactor raises the scores of a server's tools if the query names the server.
	namedServerFactor = 1.3

	exactScore  = 300_000 // above all scores of words
	foldedScore = 100_000
)

// Hit is a tool that a search has found.
type Hit struct {
	Tool  int     // index in the tools given to New
	Score float64 // higher is better; comparable within one search only
}

// Find returns the tools that match a query, the best first, at most limit of them, or all if limit
// < 1. Tools with the query as their qualified name come first, then tools with it as their own
// name, then the same without regard to case and separators. Equal tools are ordered by name. A
// query without a word finds all tools, in the order of their names.
func (ix *Index) Find(query string, limit int) []Hit {
	if limit < 1 || limit > len(ix.names) {
		limit = len(ix.names)
	}
	if len(query) > maxQueryBytes {
		query = query[:maxQueryBytes]
	}
	if foldName(query) == "" {
		return ix.listAll(limit)
	}
	words := ix.splitQuery(query)
	scores := ix.scoreTools(ix.parseConcepts(words))
	ix.boostNamedServers(scores, words)
	ix.lowerOtherActions(scores, actionOf(words))
	ix.boostNamedTools(scores, query)
	var hits []Hit
	for tool, score := range scores {
		if score > 0 {
			hits = append(hits, Hit{tool, score})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		if c := cmp.Compare(b.Score, a.Score); c != 0 {
			return c
		}
		return ix.inOrder(a.Tool, b.Tool)
	})
	return hits[:min(limit, len(hits))]
}

// listAll returns the first tools in the order of their names.
func (ix *Index) listAll(limit int) []Hit {
	hits := make([]Hit, limit)
	for i := range hits {
		hits[i].Tool = ix.byName[i]
	}
	return hits
}

// boostNamedTools puts tools with the query as their name first.
func (ix *Index) boostNamedTools(scores []float64, query string) {
	for _, tool := range ix.exact[query] {
		scores[tool] += exactScore
		if ix.names[tool] == query {
			scores[tool] += exactScore
		}
	}
	for _, tool := range ix.folded[foldName(query)] {
		scores[tool] += foldedScore
	}
}

// boostNamedServers raises the tools of servers that the query names, in one word or two.
func (ix *Index) boostNamedServers(scores []float64, words []word) {
	named := map[string]bool{}
	for i, w := range words {
		named[w.whole] = true
		if i > 0 {
			named[words[i-1].whole+w.whole] = true
		}
	}
	for name := range named {
		for _, tool := range ix.servers[name] {
			scores[tool] *= namedServerFactor
		}
	}
}

// lowerOtherActions lowers the tools with another action than the query's.
func (ix *Index) lowerOtherActions(scores []float64, asked action) {
	if asked == noAction {
		return
	}
	for tool, a := range ix.actions {
		if a != asked && a != noAction {
			scores[tool] *= otherActionFactor
		}
	}
}

// toolScore is the score of one tool while a query is evaluated.
type toolScore struct {
	score   float64
	matched float64 // weight of the concepts that the tool has
	inName  int     // number of concepts in the tool's name
}

// scoreTools returns the score of each tool.
func (ix *Index) scoreTools(concepts []concept) []float64 {
	tallies := make([]toolScore, len(ix.names))
	best := make([]posting, len(ix.names)) // for the current concept
	total := 0.0
	for i := range concepts {
		total += concepts[i].weight
		touched := ix.matchConcept(&concepts[i], best)
		for _, tool := range touched {
			t, p := &tallies[tool], &best[tool]
			t.score += p.weight
			t.matched += concepts[i].weight
			if p.inName {
				t.inName++
			}
			*p = posting{}
		}
	}
	scores := make([]float64, len(tallies))
	for i, t := range tallies {
		if t.score > 0 {
			named := float64(min(t.inName, ix.sizes[i])) / float64(max(ix.sizes[i], 1))
			scores[i] = t.score * (partialMatchFactor + (1-partialMatchFactor)*t.matched/total) * (1 + wholeNameBonus*named)
		}
	}
	return scores
}

// matchConcept sets best, for each tool that has the concept, to the best posting of its
// alternatives. It returns those tools.
func (ix *Index) matchConcept(c *concept, best []posting) (touched []int32) {
	for _, w := range c.alternatives {
		for _, p := range ix.postingsOf(w.terms) {
			p.weight *= w.weight
			if best[p.tool].weight == 0 {
				touched = append(touched, p.tool)
			}
			if p.weight > best[p.tool].weight {
				best[p.tool] = p
			}
		}
	}
	return touched
}

// postingsOf returns the postings of tools that have all the terms.
func (ix *Index) postingsOf(terms []int) []posting {
	all := ix.list[terms[0]].postings
	for _, n := range terms[1:] {
		all = intersectPostings(all, ix.list[n].postings)
	}
	return all
}

// intersectPostings returns the postings of tools that are in both lists, with the sum of the
// weights.
func intersectPostings(a, b []posting) (all []posting) {
	for len(a) > 0 && len(b) > 0 {
		switch c := cmp.Compare(a[0].tool, b[0].tool); {
		case c < 0:
			a = a[1:]
		case c > 0:
			b = b[1:]
		default:
			all = append(all, posting{a[0].tool, a[0].inName && b[0].inName, a[0].weight + b[0].weight})
			a, b = a[1:], b[1:]
		}
	}
	return all
}
