package data

import (
	"context"
	"hash/maphash"
	"math"
	"strings"
)

// Sizes of the sketches of a column. With many columns they are smaller.
const (
	sampleSize    = 16_384
	frequentSize  = 2_048
	sketchColumns = 100 // columns with sketches of full size
	longText      = 100 // bytes; longer texts are not counted as frequent values
	shownText     = 100 // bytes of the least and the greatest text
	topCount      = 5   // most frequent values of a column
)

type analyzeIn struct {
	Path string `json:"path" doc:"The file, such as sales/2024.csv" minLength:"1" maxLength:"4096"`
}

// Analysis describes the columns of a file.
type Analysis struct {
	Path    string   `json:"path"`
	Format  string   `json:"format" doc:"CSV, TSV, JSON lines or Parquet"`
	Rows    int64    `json:"rows" doc:"The number of rows, without the header"`
	Ragged  int64    `json:"ragged" doc:"The number of rows with more or fewer cells than the header"`
	Columns []Column `json:"columns"`
}

// Column describes a column.
type Column struct {
	Name     string           `json:"name"`
	Type     string           `json:"type" doc:"integer, number, boolean, date, text, mixed, or empty if no row has a value"`
	Types    map[string]int64 `json:"types" doc:"How many values have each type"`
	Missing  int64            `json:"missing" doc:"The number of rows without a value"`
	Distinct int64            `json:"distinct" doc:"The number of different values"`
	Exact    bool             `json:"exact" doc:"Whether distinct and the quantiles are exact; otherwise they are within about two percent"`
	Min      string           `json:"min,omitzero" doc:"The least text; numbers has the least number"`
	Max      string           `json:"max,omitzero" doc:"The greatest text"`
	Numbers  *Numbers         `json:"numbers,omitzero" doc:"A summary of the values that are numbers"`
	Top      []TopValue       `json:"top" doc:"The most frequent values, most frequent first"`
}

// Numbers summarizes the numbers of a column.
type Numbers struct {
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation" doc:"The standard deviation"`
	P5        float64 `json:"p5" doc:"The quantile below which are 5 percent of the numbers"`
	P25       float64 `json:"p25"`
	Median    float64 `json:"median"`
	P75       float64 `json:"p75"`
	P95       float64 `json:"p95"`
}

// TopValue is a frequent value.
type TopValue struct {
	Value  string `json:"value"`
	Count  int64  `json:"count" doc:"How often the value occurs, at least"`
	Missed int64  `json:"missed" doc:"By how much count may be too low"`
}

func (s *Server) analyzeFile(ctx context.Context, in analyzeIn) (out Analysis, err error) {
	err = s.runJob(ctx, func(ctx context.Context) error {
		t, err := s.roots.openTable(in.Path)
		if err != nil {
			return err
		}
		defer t.file.Close()
		out, err = analyzeTable(ctx, t)
		return err
	})
	return out, err
}

func analyzeTable(ctx context.Context, t *table) (Analysis, error) {
	share := min(1, sketchColumns/float64(len(t.columns)))
	seed := maphash.MakeSeed()
	summaries := make([]*summary, len(t.columns))
	for i := range summaries {
		summaries[i] = newSummary(seed, share)
	}
	out := Analysis{Path: t.path, Format: t.format}
	err := t.rows(ctx, func(r rowReader) error {
		out.Rows++
		if counted, ok := r.(interface{ cellCount() int }); ok && counted.cellCount() != len(t.columns) {
			out.Ragged++
		}
		for i, s := range summaries {
			s.add(r.cell(i))
		}
		return nil
	})
	for i, s := range summaries {
		out.Columns = append(out.Columns, s.column(t.columns[i]))
	}
	return out, err
}

// A summary collects the values of a column in bounded memory.
type summary struct {
	missing  int64
	types    map[string]int64
	distinct *distinct
	frequent *frequencies
	long     bool // whether a text was too long for frequent
	least    string
	greatest string

	count           int64 // of numbers
	mean, squares   float64
	lowest, highest float64
	sample          *sample
}

func newSummary(seed maphash.Seed, share float64) *summary {
	return &summary{
		types:    map[string]int64{},
		distinct: newDistinct(seed),
		frequent: newFrequencies(int(frequentSize * share)),
		sample:   newSample(int(sampleSize * share)),
	}
}

func (s *summary) add(v value) {
	if v.kind == kindMissing {
		s.missing++
		return
	}
	s.types[v.typeName()]++
	text := v.String()
	s.distinct.add(text)
	if len(text) <= longText {
		s.frequent.add(text)
	} else {
		s.long = true
	}
	if f, ok := v.float(); ok {
		s.addNumber(f)
		return
	}
	if s.least == "" || text < s.least {
		s.least = cutText(text, shownText)
	}
	if text > s.greatest {
		s.greatest = cutText(text, shownText)
	}
}

// addNumber updates mean and squares by Welford's method, which does not lose precision.
func (s *summary) addNumber(f float64) {
	if s.count == 0 {
		s.lowest, s.highest = f, f
	}
	s.count++
	s.lowest, s.highest = min(s.lowest, f), max(s.highest, f)
	delta := f - s.mean
	s.mean += delta / float64(s.count)
	s.squares += delta * (f - s.mean)
	s.sample.add(f)
}

func (s *summary) column(name string) Column {
	c := Column{
		Name: name, Type: s.typeName(), Types: s.types, Missing: s.missing,
		Min: s.least, Max: s.greatest, Top: s.frequent.topValues(topCount),
		Exact: s.frequent.missed == 0 && !s.long && s.sample.isExact(),
	}
	if c.Distinct = s.distinct.estimate(); s.frequent.missed == 0 && !s.long {
		c.Distinct = int64(len(s.frequent.counts))
	}
	if s.count > 0 {
		q := s.sample.quantiles(0.05, 0.25, 0.5, 0.75, 0.95)
		c.Numbers = &Numbers{
			Min: s.lowest, Max: s.highest, Mean: finite(s.mean), Deviation: finite(math.Sqrt(s.squares / float64(s.count))),
			P5: q[0], P25: q[1], Median: q[2], P75: q[3], P95: q[4],
		}
	}
	return c
}

// finite replaces what JSON cannot hold, after an overflow, by the greatest number.
func finite(f float64) float64 {
	if math.IsNaN(f) {
		return math.MaxFloat64
	}
	return max(-math.MaxFloat64, min(math.MaxFloat64, f))
}

// typeName returns the type that all values have.
func (s *summary) typeName() string {
	switch {
	case len(s.types) == 0:
		return "empty"
	case len(s.types) == 2 && s.types[typeInteger] > 0 && s.types[typeNumber] > 0:
		return typeNumber
	case len(s.types) > 1:
		return "mixed"
	}
	for name := range s.types {
		return name
	}
	return typeText
}

// cutText copies a text of at most a number of bytes, and shortens a longer one at a character. A
// copy does not keep the row that the text is part of.
func cutText(s string, bytes int) string {
	if len(s) <= bytes {
		return strings.Clone(s)
	}
	return (strings.ToValidUTF8(s[:bytes], "")) + "…"
}
