package search

// action is what a tool does to things, according to the verb in its name. Verbs with several
// meanings have no action.
type action uint8

const (
	noAction action = iota
	reads
	creates
	updates
	deletes
)

// otherActionFactor lowers the score of a tool with another action than the query's. A tool that
// deletes issues shares all words but one with the tool that lists them.
const otherActionFactor = 0.75

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

// questionWords begin a question, which asks for information and not for a change.
var questionWords = set("who whom whose what which when where why how is are was were does do did has have")

// actionOf returns the action of the first word or phrase of a query after its stop words: in a
// request the verb comes first. A question reads.
func actionOf(words []word) action {
	if len(words) > 0 && questionWords[words[0].whole] {
		return reads
	}
	for i, w := range words {
		if stopWords[w.whole] {
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
	splitWords(name, func(w word) bool {
		for _, part := range append([]string{w.whole}, w.parts...) {
			if a == noAction {
				a = actions[stem(part)]
			}
		}
		return a == noAction
	})
	return a
}
