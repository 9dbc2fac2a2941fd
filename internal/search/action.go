package search

// action is what a tool does to things, as far as its name's verb tells. Verbs that may mean several are left out.
type action uint8

const (
	noAction action = iota
	reads
	creates
	updates
	deletes
)

// otherAction is what is left of the score of a tool that does something else than was asked for: one that deletes has
// every word in common with the one that lists.
const otherAction = 0.75

var actions = func() map[string]action {
	all := map[string]action{}
	for a, verbs := range map[action]string{
		reads:   "get list read show view find search fetch retrieve query display see describe lookup",
		creates: "create add new make insert generate",
		updates: "update edit modify change patch alter replace rename",
		deletes: "delete remove erase destroy drop purge forget",
	} {
		for verb := range set(verbs) {
			all[stem(verb)] = a
		}
	}
	return all
}()

// asking are words that a question begins with: it wants to know something, and not to change it.
var asking = set("who whom whose what which when where why how is are was were does do did has have")

// actionOf returns the action of a query: that of the first word or phrase that says something, which is where the verb of a
// request stands. A question reads.
func actionOf(words []word) action {
	if len(words) > 0 && asking[words[0].whole] {
		return reads
	}
	for i, w := range words {
		if said[w.whole] {
			continue
		}
		if i+1 < len(words) {
			for _, other := range synonyms()[stem(w.whole)+" "+stem(words[i+1].whole)] {
				if a := actions[other.stems[0]]; a != noAction {
					return a
				}
			}
		}
		return actions[stem(w.whole)]
	}
	return noAction
}

// nameAction returns the action of the first verb in a tool's name.
func nameAction(name string) (a action) {
	split(name, func(w word) bool {
		for _, part := range append([]string{w.whole}, w.parts...) {
			if a == noAction {
				a = actions[stem(part)]
			}
		}
		return a == noAction
	})
	return a
}
