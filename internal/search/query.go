package search

import (
	"slices"
	"strings"
)

// What is read of a query, and how far it is widened: a question has a few dozen words.
const (
	maxQueryBytes = 2 << 10
	maxConcepts   = 48
	maxNear       = 12

	// implied is the weight of what a query does not say in words.
	implied = 0.7
	// toldVerb is the weight of a verb in a question: who made it asks for nothing to be made.
	toldVerb = 0.4
)

// concept is one thing that a query names, in all the ways to say it.
type concept struct {
	ways  []way
	idf   float64 // of the first way
	worth float64 // what a tool can get for it, about
}

// way is one or more terms that say it together.
type way struct {
	terms  []int
	weight float64
	same   bool // it says what the first way does, and not only now and then
}

// concepts reads the words of a query.
func (ix *Index) concepts(words []word) (all []concept) {
	question := len(words) > 0 && asking[words[0].whole]
	if question {
		all = append(all, ix.reading())
	}
	seen := map[string]bool{}
	for len(words) > 0 && len(all) < maxConcepts {
		c, n, key := ix.concept(words)
		words = words[n:]
		if len(c.ways) > 0 && !seen[key] {
			seen[key] = true
			if question && actions[key] > reads {
				c.weaken(toldVerb)
			}
			if same := slices.IndexFunc(all, c.repeats); same >= 0 {
				all[same].merge(c)
				continue
			}
			all = append(all, c)
		}
	}
	return all
}

// repeats tells whether a concept says in other words what another does, as recurring does after schedule.
func (c concept) repeats(other concept) bool {
	return slices.ContainsFunc(other.ways, func(w way) bool { return w.same && slices.Equal(w.terms, c.ways[0].terms) })
}

// merge adds the ways of a concept that says the same.
func (c *concept) merge(other concept) {
	for _, w := range other.ways {
		at := slices.IndexFunc(c.ways, func(known way) bool { return slices.Equal(known.terms, w.terms) })
		if at < 0 {
			c.ways = append(c.ways, w)
			continue
		}
		c.ways[at].weight = max(c.ways[at].weight, w.weight)
	}
	c.worth = max(c.worth, other.worth)
}

// words splits a query. A word that is made of several stands for itself where a tool has it.
func (ix *Index) words(query string) (words []word) {
	split(query, func(w word) bool {
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

// reading is what the tools are called that answer questions.
func (ix *Index) reading() (c concept) {
	for _, verb := range []string{"get", "list", "read", "search", "find", "query", "check"} {
		c.together(ix, []string{stem(verb)}, implied)
	}
	return c
}

// concept reads what the first of the words say, and how many they are.
func (ix *Index) concept(words []word) (c concept, n int, key string) {
	if c, n, key = ix.phrase(words); n > 0 {
		return c, n, key
	}
	w := words[0]
	if said[w.whole] {
		return c, 1, ""
	}
	if len(words) > 1 && !said[words[1].whole] {
		if joined, ok := ix.terms[stem(w.whole+words[1].whole)]; ok {
			c.way(ix, []int{joined}, 1)
			c.together(ix, stems([]string{w.whole, words[1].whole}), 1)
			return c, 2, w.whole + words[1].whole
		}
	}
	s := stem(w.whole)
	ix.say(&c, s)
	if len(w.parts) > 0 {
		c.together(ix, stems(w.parts), 0.9)
	}
	for _, other := range synonyms()[s] {
		c.together(ix, other.stems, other.weight)
	}
	return c, 1, s
}

// phrase reads a phrase of the table of synonyms.
func (ix *Index) phrase(words []word) (c concept, n int, key string) {
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
		c.together(ix, stemmed, 1)
		for _, other := range others {
			c.together(ix, other.stems, other.weight)
		}
		return c, n, key
	}
	return c, 0, ""
}

// say adds a stem, or where no tool has it, what is near it.
func (ix *Index) say(c *concept, s string) {
	if n, ok := ix.terms[s]; ok {
		c.way(ix, []int{n}, 1)
		return
	}
	if synonyms()[s] != nil {
		return // an English word, and well spelled
	}
	near := ix.near(s)
	for _, w := range near {
		c.way(ix, w.terms, w.weight)
	}
	if len(near) == 0 {
		ix.take(c, s)
	}
}

// take takes apart what was written together: changelog.
func (ix *Index) take(c *concept, s string) {
	for at := 3; at <= len(s)-3; at++ {
		a, first := ix.terms[stem(s[:at])]
		b, second := ix.terms[s[at:]]
		if first && second {
			c.way(ix, []int{a, b}, 0.8)
			return
		}
	}
}

// together adds a way of several stems, if tools have all of them.
func (c *concept) together(ix *Index, stems []string, weight float64) {
	terms := make([]int, 0, len(stems))
	for _, s := range stems {
		n, ok := ix.terms[s]
		if !ok {
			return
		}
		terms = append(terms, n)
	}
	c.way(ix, terms, weight)
}

// way adds a way. What is said instead is worth no more than what was said: a rare synonym would be.
func (c *concept) way(ix *Index, terms []int, weight float64) {
	same := weight >= closeWeight
	idf := 0.0
	for _, n := range terms {
		idf += ix.list[n].idf
	}
	if len(c.ways) == 0 {
		c.idf, c.worth = idf, idf*weight
	}
	if slices.ContainsFunc(c.ways, func(w way) bool { return slices.Equal(w.terms, terms) }) {
		return
	}
	if weight < 1 && idf > c.idf {
		weight *= c.idf / idf
	}
	c.ways = append(c.ways, way{terms, weight, same})
}

// weaken makes a concept worth less.
func (c *concept) weaken(to float64) {
	c.worth *= to
	for i := range c.ways {
		c.ways[i].weight *= to
	}
}
