package search

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// A field of a tool, and what a word in it is worth.
type field int

const (
	nameField field = iota
	titleField
	serverField
	leadField // a description's beginning says what the tool does, the rest how to use it
	descriptionField
	parameterField
	fields
)

var (
	fieldWeight = [fields]float64{nameField: 3, titleField: 2, serverField: 1.5, leadField: 1.3, descriptionField: 0.6, parameterField: 0.5}
	// fieldSlope is how far a long field makes each of its words worth less (BM25's b).
	fieldSlope = [fields]float64{nameField: 0.6, titleField: 0.6, serverField: 0, leadField: 0.6, descriptionField: 0.75, parameterField: 0.6}
)

const (
	saturation = 1.2 // BM25's k1: how soon saying a word again is worth nothing more

	// What is read of a tool. A server that writes books is found by their beginnings.
	maxFieldBytes = 8 << 10
	leadBytes     = 160
	// maxSaid is how often a word counts in a field: who repeats one gains nothing.
	maxSaid = 3
)

// Index is a set of tools that can be searched. It does not change, and is safe for concurrent use.
type Index struct {
	names   []string
	byName  []int // the tools in the order of their names
	exact   map[string][]int
	folded  map[string][]int
	actions []action
	sizes   []int            // how many words a tool's name has
	servers map[string][]int // by their folded names
	terms   map[string]int
	list    []term // by the numbers in terms
	sorted  []string
}

// term is a stem with the tools in which it stands, in their order.
type term struct {
	text     string
	idf      float64
	postings []posting
}

// posting is what a term is worth in a tool.
type posting struct {
	tool   int32
	inName bool
	worth  float64
}

// New returns an index of the tools, which it copies what it needs of.
func New(docs []Tool) *Index {
	n := len(docs)
	ix := &Index{
		names: make([]string, n), byName: make([]int, n), sizes: make([]int, n), actions: make([]action, n),
		exact: make(map[string][]int, 2*n), folded: make(map[string][]int, 2*n), servers: map[string][]int{}, terms: map[string]int{},
	}
	b := builder{ix: ix, stems: map[string]int{}}
	for i := range docs {
		ix.names[i], ix.byName[i] = docs[i].Name, i
		ix.know(i, &docs[i])
		b.add(i, &docs[i])
	}
	b.finish()
	slices.SortFunc(ix.byName, ix.inOrder)
	return ix
}

// inOrder orders tools by their names, and those of one name by their positions.
func (ix *Index) inOrder(a, b int) int {
	if c := strings.Compare(ix.names[a], ix.names[b]); c != 0 {
		return c
	}
	return a - b
}

// know keeps a tool's names, and them without regard to case and separators.
func (ix *Index) know(i int, t *Tool) {
	if server := fold(t.Server); server != "" {
		ix.servers[server] = append(ix.servers[server], i)
	}
	bare := t.bare()
	for n, name := range []string{t.Name, bare} {
		if n == 1 && name == t.Name {
			break
		}
		ix.exact[name] = append(ix.exact[name], i)
		if key := fold(name); key != "" {
			ix.folded[key] = append(ix.folded[key], i)
		}
	}
}

// fold returns a name without what models get wrong in it: case and separators.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if !inWord(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// builder counts words.
type builder struct {
	ix    *Index
	stems map[string]int // of each word as it was written, its term; -1 where it says nothing
	found [][]count      // by term
	long  [fields]float64
	sizes [][fields]float64
}

// count is how often a term stands in a tool's fields.
type count struct {
	tool int32
	in   [fields]uint8
}

func (b *builder) add(i int, t *Tool) {
	b.sizes = append(b.sizes, [fields]float64{})
	lead, rest := cutLead(t.Description)
	b.field(i, nameField, withoutServer(t))
	b.ix.actions[i] = nameAction(withoutServer(t))
	b.ix.sizes[i] = int(b.sizes[i][nameField])
	b.field(i, titleField, t.Title)
	b.field(i, serverField, t.Server)
	b.field(i, leadField, lead)
	b.field(i, descriptionField, rest)
	left := maxFieldBytes
	for _, p := range t.Parameters {
		if left -= len(p.Name) + len(p.Description); left < 0 {
			break
		}
		b.field(i, parameterField, p.Name)
		b.field(i, parameterField, p.Description)
	}
	for f, size := range b.sizes[i] {
		b.long[f] += size
	}
}

// withoutServer returns a tool's own name without its server's, which many servers put before each.
func withoutServer(t *Tool) string {
	name := t.bare()
	n := len(t.Server)
	if n > 0 && len(name) > n+1 && strings.EqualFold(name[:n], t.Server) && !inWord(rune(name[n])) {
		return name[n+1:]
	}
	return name
}

// cutLead cuts a description behind its first sentence, or where that is long.
func cutLead(description string) (lead, rest string) {
	if len(description) > maxFieldBytes {
		description = description[:maxFieldBytes]
	}
	end := len(description)
	for _, stop := range []string{". ", ".\n", "\n\n"} {
		if at := strings.Index(description, stop); at > 0 {
			end = min(end, at)
		}
	}
	if end > leadBytes {
		if end = strings.LastIndexByte(description[:leadBytes], ' '); end < 0 {
			end = leadBytes
		}
	}
	return description[:end], description[end:]
}

func (b *builder) field(i int, f field, text string) {
	if len(text) > maxFieldBytes {
		text = text[:maxFieldBytes]
	}
	split(text, func(w word) bool {
		if b.word(i, f, w.whole) {
			b.sizes[i][f] += float64(max(len(w.parts), 1))
		}
		for _, part := range w.parts {
			b.word(i, f, part)
		}
		return true
	})
}

// word counts a word, if it says something.
func (b *builder) word(i int, f field, w string) bool {
	n, ok := b.stems[w]
	if !ok {
		if n = -1; !said[w] {
			n = b.term(stem(w))
		}
		b.stems[strings.Clone(w)] = n
	}
	if n < 0 {
		return false
	}
	counts := b.found[n]
	if len(counts) == 0 || counts[len(counts)-1].tool != int32(i) {
		counts = append(counts, count{tool: int32(i)})
		b.found[n] = counts
	}
	if in := &counts[len(counts)-1].in[f]; *in < maxSaid {
		*in++
	}
	return true
}

// term returns the number of a stem.
func (b *builder) term(stem string) int {
	n, ok := b.ix.terms[stem]
	if !ok {
		n = len(b.ix.list)
		stem = strings.Clone(stem)
		b.ix.terms[stem] = n
		b.ix.list = append(b.ix.list, term{text: stem})
		b.found = append(b.found, nil)
	}
	return n
}

// finish turns counts into what they are worth.
func (b *builder) finish() {
	tools := float64(len(b.sizes))
	var average [fields]float64
	for f := range average {
		average[f] = max(b.long[f]/max(tools, 1), 1)
	}
	for n, counts := range b.found {
		t := &b.ix.list[n]
		t.idf = math.Log(1 + (tools-float64(len(counts))+0.5)/(float64(len(counts))+0.5))
		t.postings = make([]posting, len(counts))
		for i, c := range counts {
			t.postings[i] = posting{tool: c.tool, inName: c.in[nameField] > 0, worth: t.idf * b.worth(&c, &average)}
		}
		b.ix.sorted = append(b.ix.sorted, t.text)
	}
	slices.Sort(b.ix.sorted)
}

func (b *builder) worth(c *count, average *[fields]float64) float64 {
	sum := 0.0
	for f, n := range c.in {
		if n > 0 {
			long := 1 - fieldSlope[f] + fieldSlope[f]*b.sizes[c.tool][f]/average[f]
			sum += fieldWeight[f] * float64(n) / long
		}
	}
	return sum * (saturation + 1) / (sum + saturation)
}
