package search

import (
	"cmp"
	"slices"
)

const (
	// wholeName is what a tool gains when its whole name was said: retry_pipeline before retry_pipeline_job.
	wholeName = 0.35
	// partly is what is left of the score of a tool that has next to nothing of what was asked for.
	partly = 0.5

	// namedServer is what the tools of a server gain whose name was said.
	namedServer = 1.3

	exactScore  = 300_000 // more than words can be worth
	foldedScore = 100_000
)

// Hit is a tool that was found.
type Hit struct {
	Tool  int     // its position among the tools that New was given
	Score float64 // higher is better; comparable within one answer only
}

// Find returns the tools that answer a query, the best first, at most limit of them (all if limit < 1). Tools whose
// qualified name is the query come first, then those whose own name it is, then the same without regard to case and
// separators. What ranks alike is ordered by name. A query without a word finds all tools, in the order of their names.
func (ix *Index) Find(query string, limit int) []Hit {
	if limit < 1 || limit > len(ix.names) {
		limit = len(ix.names)
	}
	if len(query) > maxQueryBytes {
		query = query[:maxQueryBytes]
	}
	if fold(query) == "" {
		return ix.all(limit)
	}
	words := ix.words(query)
	scores := ix.score(ix.concepts(words))
	ix.favourServers(scores, words)
	ix.favourAction(scores, actionOf(words))
	ix.favour(scores, query)
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

func (ix *Index) all(limit int) []Hit {
	hits := make([]Hit, limit)
	for i := range hits {
		hits[i].Tool = ix.byName[i]
	}
	return hits
}

// favour puts the tools first that are called what was asked for.
func (ix *Index) favour(scores []float64, query string) {
	for _, tool := range ix.exact[query] {
		scores[tool] += exactScore
		if ix.names[tool] == query {
			scores[tool] += exactScore
		}
	}
	for _, tool := range ix.folded[fold(query)] {
		scores[tool] += foldedScore
	}
}

// favourServers favours the tools of a server whose name was said, in one word or two.
func (ix *Index) favourServers(scores []float64, words []word) {
	named := map[string]bool{}
	for i, w := range words {
		named[w.whole] = true
		if i > 0 {
			named[words[i-1].whole+w.whole] = true
		}
	}
	for name := range named {
		for _, tool := range ix.servers[name] {
			scores[tool] *= namedServer
		}
	}
}

// favourAction lowers the tools that do something else than was asked for.
func (ix *Index) favourAction(scores []float64, asked action) {
	if asked == noAction {
		return
	}
	for tool, a := range ix.actions {
		if a != asked && a != noAction {
			scores[tool] *= otherAction
		}
	}
}

// tally is what a tool has of a query.
type tally struct {
	score float64
	of    float64 // the worth of the concepts that it has
	named int     // how many of them its name says
}

func (ix *Index) score(concepts []concept) []float64 {
	tallies := make([]tally, len(ix.names))
	best := make([]posting, len(ix.names)) // of the concept at hand
	total := 0.0
	for i := range concepts {
		total += concepts[i].worth
		touched := ix.match(&concepts[i], best)
		for _, tool := range touched {
			t, p := &tallies[tool], &best[tool]
			t.score += p.worth
			t.of += concepts[i].worth
			if p.inName {
				t.named++
			}
			*p = posting{}
		}
	}
	scores := make([]float64, len(tallies))
	for i, t := range tallies {
		if t.score > 0 {
			named := float64(min(t.named, ix.sizes[i])) / float64(max(ix.sizes[i], 1))
			scores[i] = t.score * (partly + (1-partly)*t.of/total) * (1 + wholeName*named)
		}
	}
	return scores
}

// match sets best for the tools that have a concept, to what the best way to say it is worth there.
func (ix *Index) match(c *concept, best []posting) (touched []int32) {
	for _, w := range c.ways {
		for _, p := range ix.postings(w.terms) {
			p.worth *= w.weight
			if best[p.tool].worth == 0 {
				touched = append(touched, p.tool)
			}
			if p.worth > best[p.tool].worth {
				best[p.tool] = p
			}
		}
	}
	return touched
}

// postings returns those of the tools that have all the terms.
func (ix *Index) postings(terms []int) []posting {
	all := ix.list[terms[0]].postings
	for _, n := range terms[1:] {
		all = both(all, ix.list[n].postings)
	}
	return all
}

func both(a, b []posting) (all []posting) {
	for len(a) > 0 && len(b) > 0 {
		switch c := cmp.Compare(a[0].tool, b[0].tool); {
		case c < 0:
			a = a[1:]
		case c > 0:
			b = b[1:]
		default:
			all = append(all, posting{a[0].tool, a[0].inName && b[0].inName, a[0].worth + b[0].worth})
			a, b = a[1:], b[1:]
		}
	}
	return all
}
