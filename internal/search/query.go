package search

import (
	"slices"
	"strings"
)

// Limits of a query, and how far it is widened: a question has a few dozen words.
const (
	maxQueryBytes = 2 << 10
	maxConcepts   = 48
	maxNear       = 12

	// impliedWeight is the weight of a concept that the query implies.
	impliedWeight = 0.7
	// questionVerbWeight is the weight of a verb in a question: "who created it" asks for nothing
	// to be created.
	questionVerbWeight = 0.4
)

// concept is one thing that a query names, with all ways to say it.
type concept struct {
	alternatives []alternative
	idf          float64 // of the first alternative
	weight       float64 // about the most that a tool can get for it
}

// alternative is a way to say a concept: one term, or several that a tool must have together.
type alternative struct {
	terms     []int
	weight    float64
	isSynonym bool // means the same as the first alternative in general, not only in some uses
}

// parseConcepts returns the concepts of a query's words.
func (ix *Index) parseConcepts(words []word) (all []concept) {
	question := len(words) > 0 && questionWords[words[0].whole]
	if question {
		all = append(all, ix.readingConcept())
	}
	seen := map[string]bool{}
	for len(words) > 0 && len(all) < maxConcepts {
		c, n, key := ix.parseConcept(words)
		words = words[n:]
		if len(c.alternatives) > 0 && !seen[key] {
			seen[key] = true
			if question && actions[key] > reads {
				c.scaleWeights(questionVerbWeight)
			}
			if same := slices.IndexFunc(all, c.isSynonymOf); same >= 0 {
				all[same].mergeConcept(c)
				continue
			}
			all = append(all, c)
		}
	}
	return all
}

// isSynonymOf reports whether the concept repeats another one in other words, as recurring does
// after schedule.
func (c concept) isSynonymOf(other concept) bool {
	return slices.ContainsFunc(other.alternatives, func(w alternative) bool { return w.isSynonym && slices.Equal(w.terms, c.alternatives[0].terms) })
}

// mergeConcept adds the alternatives of a concept that means the same.
func (c *concept) mergeConcept(other concept) {
	for _, w := range other.alternatives {
		at := slices.IndexFunc(c.alternatives, func(known alternative) bool { return slices.Equal(known.terms, w.terms) })
		if at < 0 {
			c.alternatives = append(c.alternatives, w)
			continue
		}
		c.alternatives[at].weight = max(c.alternatives[at].weight, w.weight)
	}
	c.weight = max(c.weight, other.weight)
}

// splitQuery splits a query into words. A compound word is split into its parts unless a tool has
// it.
func (ix *Index) splitQuery(query string) (words []word) {
	splitWords(query, func(w word) bool {
		if _, ok := ix.terms[stem(w.whole)]; ok || len(w.parts) == 0 {
			words = append(words, w)
			return true
		}
		for _, part := range w.parts {
			words = append(words, word{whole: part})
		}
		return true
	})
	return words
}

// readingConcept is the concept of a question: the verbs of tools that answer questions.
func (ix *Index) readingConcept() (c concept) {
	for _, verb := range []string{"get", "list", "read", "search", "find", "query", "check"} {
		c.addStems(ix, []string{stem(verb)}, impliedWeight)
	}
	return c
}

// parseConcept returns the concept of the first words, the number of those words, and a key that is
// equal for equal concepts.
func (ix *Index) parseConcept(words []word) (c concept, n int, key string) {
	if c, n, key = ix.parsePhrase(words); n > 0 {
		return c, n, key
	}
	w := words[0]
	if stopWords[w.whole] {
		return c, 1, ""
	}
	if len(words) > 1 && !stopWords[words[1].whole] {
		if joined, ok := ix.terms[stem(w.whole+words[1].whole)]; ok {
			c.addAlternative(ix, []int{joined}, 1)
			c.addStems(ix, stemAll([]string{w.whole, words[1].whole}), 1)
			return c, 2, w.whole + words[1].whole
		}
	}
	s := stem(w.whole)
	ix.addStem(&c, s)
	if len(w.parts) > 0 {
		c.addStems(ix, stemAll(w.parts), 0.9)
	}
	for _, other := range synonyms()[s] {
		c.addStems(ix, other.stems, other.weight)
	}
	return c, 1, s
}

// parsePhrase returns the concept of a phrase in the table of synonyms; n is 0 if the words do not
// begin with one.
func (ix *Index) parsePhrase(words []word) (c concept, n int, key string) {
	for n = min(3, len(words)); n > 1; n-- {
		var stemmed []string
		for _, w := range words[:n] {
			stemmed = append(stemmed, stem(w.whole))
		}
		key = strings.Join(stemmed, " ")
		others, ok := synonyms()[key]
		if !ok {
			continue
		}
		c.addStems(ix, stemmed, 1)
		for _, other := range others {
			c.addStems(ix, other.stems, other.weight)
		}
		return c, n, key
	}
	return c, 0, ""
}

// addStem adds a stem or, if no tool has it, similar terms.
func (ix *Index) addStem(c *concept, s string) {
	if n, ok := ix.terms[s]; ok {
		c.addAlternative(ix, []int{n}, 1)
		return
	}
	if synonyms()[s] != nil {
		return // a correctly spelled English word
	}
	near := ix.similarTerms(s)
	for _, w := range near {
		c.addAlternative(ix, w.terms, w.weight)
	}
	if len(near) == 0 {
		ix.addCompound(c, s)
	}
}

// addCompound adds the two parts of a word written together, such as changelog.
func (ix *Index) addCompound(c *concept, s string) {
	for at := 3; at <= len(s)-3; at++ {
		a, first := ix.terms[stem(s[:at])]
		b, second := ix.terms[s[at:]]
		if first && second {
			c.addAlternative(ix, []int{a, b}, 0.8)
			return
		}
	}
}

// addStems adds an alternative of several stems, if each occurs in some tool.
func (c *concept) addStems(ix *Index, stems []string, weight float64) {
	terms := make([]int, 0, len(stems))
	for _, s := range stems {
		n, ok := ix.terms[s]
		if !ok {
			return
		}
		terms = append(terms, n)
	}
	c.addAlternative(ix, terms, weight)
}

// addAlternative adds an alternative. Its weight is at most the first alternative's: a rare synonym
// must not count more than the user's own word.
func (c *concept) addAlternative(ix *Index, terms []int, weight float64) {
	same := weight >= closeWeight
	idf := 0.0
	for _, n := range terms {
		idf += ix.list[n].idf
	}
	if len(c.alternatives) == 0 {
		c.idf, c.weight = idf, idf*weight
	}
	if slices.ContainsFunc(c.alternatives, func(w alternative) bool { return slices.Equal(w.terms, terms) }) {
		return
	}
	if weight < 1 && idf > c.idf {
		weight *= c.idf / idf
	}
	c.alternatives = append(c.alternatives, alternative{terms, weight, same})
}

// scaleWeights multiplies all weights by a factor.
func (c *concept) scaleWeights(to float64) {
	c.weight *= to
	for i := range c.alternatives {
		c.alternatives[i].weight *= to
	}
}
