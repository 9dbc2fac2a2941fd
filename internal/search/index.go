package search

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// field is a part of a tool's definition. Each has a weight for the words in it.
type field int

const (
	nameField field = iota
	titleField
	serverField
	leadField // the first sentence of a description says what the tool does, the rest how to use it
	descriptionField
	parameterField
	fields
)

var (
	fieldWeight = [fields]float64{nameField: 3, titleField: 2, serverField: 1.5, leadField: 1.3, descriptionField: 0.6, parameterField: 0.5}
	// fieldSlope is how much the length of a field lowers the weight of each word in it (BM25's b).
	fieldSlope = [fields]float64{nameField: 0.6, titleField: 0.6, serverField: 0, leadField: 0.6, descriptionField: 0.75, parameterField: 0.6}
)

const (
	saturation = 1.2 // BM25's k1: how soon repeating a word adds nothing

	// Longer fields are cut. Only their beginnings are searched.
	maxFieldBytes = 8 << 10
	leadBytes     = 160
	// maxRepeats is how often a word counts in a field, so that repeating a word gains little.
	maxRepeats = 3
)

// Index is an immutable set of tools to search. It is safe for concurrent use.
type Index struct {
	names   []string
	byName  []int // tools in the order of their names
	exact   map[string][]int
	folded  map[string][]int
	actions []action
	sizes   []int            // number of words in each tool's name
	servers map[string][]int // tools by folded server name
	terms   map[string]int
	list    []term // by term number
	sorted  []string
}

// term is a stem, with the tools that contain it in their order.
type term struct {
	text     string
	idf      float64
	postings []posting
}

// posting is the weight of a term in a tool.
type posting struct {
	tool   int32
	inName bool
	weight float64
}

// New returns an index of the tools. It does not keep them.
func New(docs []Tool) *Index {
	n := len(docs)
	ix := &Index{
		names: make([]string, n), byName: make([]int, n), sizes: make([]int, n), actions: make([]action, n),
		exact: make(map[string][]int, 2*n), folded: make(map[string][]int, 2*n), servers: map[string][]int{}, terms: map[string]int{},
	}
	b := builder{ix: ix, stems: map[string]int{}}
	for i := range docs {
		ix.names[i], ix.byName[i] = docs[i].Name, i
		ix.addNames(i, &docs[i])
		b.addTool(i, &docs[i])
	}
	b.weighTerms()
	slices.SortFunc(ix.byName, ix.inOrder)
	return ix
}

// inOrder compares two tools by name, then by position.
func (ix *Index) inOrder(a, b int) int {
	if c := strings.Compare(ix.names[a], ix.names[b]); c != 0 {
		return c
	}
	return a - b
}

// addNames indexes a tool by its names, exact and folded.
func (ix *Index) addNames(i int, t *Tool) {
	if server := foldName(t.Server); server != "" {
		ix.servers[server] = append(ix.servers[server], i)
	}
	bare := t.ownName()
	for n, name := range []string{t.Name, bare} {
		if n == 1 && name == t.Name {
			break
		}
		ix.exact[name] = append(ix.exact[name], i)
		if key := foldName(name); key != "" {
			ix.folded[key] = append(ix.folded[key], i)
		}
	}
}

// foldName returns a name without case and separators, which models often get wrong.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		if !inWord(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// builder counts the words of all tools, to weigh them afterwards.
type builder struct {
	ix         *Index
	stems      map[string]int // term number of each word as written; -1 for a stop word
	counts     [][]count      // by term number
	totalSizes [fields]float64
	sizes      [][fields]float64
}

// count is the number of times that a term occurs in each field of a tool.
type count struct {
	tool int32
	in   [fields]uint8
}

// addTool counts the words of a tool.
func (b *builder) addTool(i int, t *Tool) {
	b.sizes = append(b.sizes, [fields]float64{})
	lead, rest := cutLead(t.Description)
	b.addField(i, nameField, withoutServer(t))
	b.ix.actions[i] = nameAction(withoutServer(t))
	b.ix.sizes[i] = int(b.sizes[i][nameField])
	b.addField(i, titleField, t.Title)
	b.addField(i, serverField, t.Server)
	b.addField(i, leadField, lead)
	b.addField(i, descriptionField, rest)
	left := maxFieldBytes
	for _, p := range t.Parameters {
		if left -= len(p.Name) + len(p.Description); left < 0 {
			break
		}
		b.addField(i, parameterField, p.Name)
		b.addField(i, parameterField, p.Description)
	}
	for f, size := range b.sizes[i] {
		b.totalSizes[f] += size
	}
}

// withoutServer returns a tool's own name without its server's name, which many servers put in
// front.
func withoutServer(t *Tool) string {
	name := t.ownName()
	n := len(t.Server)
	if n > 0 && len(name) > n+1 && strings.EqualFold(name[:n], t.Server) && !inWord(rune(name[n])) {
		return name[n+1:]
	}
	return name
}

// cutLead splits a description after its first sentence, or after leadBytes.
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

// addField counts the words of a field.
func (b *builder) addField(i int, f field, text string) {
	if len(text) > maxFieldBytes {
		text = text[:maxFieldBytes]
	}
	splitWords(text, func(w word) bool {
		if b.addWord(i, f, w.whole) {
			b.sizes[i][f] += float64(max(len(w.parts), 1))
		}
		for _, part := range w.parts {
			b.addWord(i, f, part)
		}
		return true
	})
}

// addWord counts a word. It reports false for a stop word.
func (b *builder) addWord(i int, f field, w string) bool {
	n, ok := b.stems[w]
	if !ok {
		if n = -1; !stopWords[w] {
			n = b.termNumber(stem(w))
		}
		b.stems[strings.Clone(w)] = n
	}
	if n < 0 {
		return false
	}
	counts := b.counts[n]
	if len(counts) == 0 || counts[len(counts)-1].tool != int32(i) {
		counts = append(counts, count{tool: int32(i)})
		b.counts[n] = counts
	}
	if in := &counts[len(counts)-1].in[f]; *in < maxRepeats {
		*in++
	}
	return true
}

// termNumber returns the number of a stem's term, which may be new.
func (b *builder) termNumber(stem string) int {
	n, ok := b.ix.terms[stem]
	if !ok {
		n = len(b.ix.list)
		stem = strings.Clone(stem)
		b.ix.terms[stem] = n
		b.ix.list = append(b.ix.list, term{text: stem})
		b.counts = append(b.counts, nil)
	}
	return n
}

// weighTerms turns counts into weights by the BM25F formula.
func (b *builder) weighTerms() {
	tools := float64(len(b.sizes))
	var average [fields]float64
	for f := range average {
		average[f] = max(b.totalSizes[f]/max(tools, 1), 1)
	}
	for n, counts := range b.counts {
		t := &b.ix.list[n]
		t.idf = math.Log(1 + (tools-float64(len(counts))+0.5)/(float64(len(counts))+0.5))
		t.postings = make([]posting, len(counts))
		for i, c := range counts {
			t.postings[i] = posting{tool: c.tool, inName: c.in[nameField] > 0, weight: t.idf * b.termWeight(&c, &average)}
		}
		b.ix.sorted = append(b.ix.sorted, t.text)
	}
	slices.Sort(b.ix.sorted)
}

func (b *builder) termWeight(c *count, average *[fields]float64) float64 {
	sum := 0.0
	for f, n := range c.in {
		if n > 0 {
			long := 1 - fieldSlope[f] + fieldSlope[f]*b.sizes[c.tool][f]/average[f]
			sum += fieldWeight[f] * float64(n) / long
		}
	}
	return sum * (saturation + 1) / (sum + saturation)
}
