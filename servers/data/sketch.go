package data

import (
	"cmp"
	"hash/maphash"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
)

// A sample is a uniform sample of numbers (reservoir sampling). Its quantiles are exact until it is
// full; afterwards the rank of a quantile is within about one percent.
type sample struct {
	size   int
	seen   uint64
	values []float64
	random *rand.Rand
}

// newSample returns a sample of at most size numbers. Equal input has an equal sample.
func newSample(size int) *sample {
	return &sample{size: size, random: rand.New(rand.NewPCG(1, 2))}
}

func (s *sample) add(f float64) {
	s.seen++
	if len(s.values) < s.size {
		s.values = append(s.values, f)
		return
	}
	if i := s.random.Uint64N(s.seen); i < uint64(s.size) {
		s.values[i] = f
	}
}

// isExact reports whether the sample holds all numbers.
func (s *sample) isExact() bool { return s.seen <= uint64(s.size) }

// quantiles returns the numbers at shares of the sorted sample, interpolated between neighbours.
func (s *sample) quantiles(shares ...float64) []float64 {
	slices.Sort(s.values)
	var all []float64
	for _, share := range shares {
		position := share * float64(len(s.values)-1)
		below := math.Floor(position)
		low, high := s.values[int(below)], s.values[int(math.Ceil(position))]
		weight := position - below
		all = append(all, low*(1-weight)+high*weight)
	}
	return all
}

// frequencies counts the most frequent texts (Misra and Gries). A count is too low by at most
// missed.
type frequencies struct {
	size   int
	counts map[string]int64
	missed int64
}

func newFrequencies(size int) *frequencies {
	return &frequencies{size: size, counts: map[string]int64{}}
}

func (f *frequencies) add(text string) {
	if _, known := f.counts[text]; !known {
		text = strings.Clone(text) // text may be part of a long row
	}
	f.counts[text]++
	if len(f.counts) > f.size {
		f.dropHalf()
	}
}

// dropHalf subtracts the median count from all counts and drops counts that are not positive then.
func (f *frequencies) dropHalf() {
	sorted := make([]int64, 0, len(f.counts))
	for _, n := range f.counts {
		sorted = append(sorted, n)
	}
	slices.Sort(sorted)
	median := sorted[len(sorted)/2]
	for text, n := range f.counts {
		if n <= median {
			delete(f.counts, text)
		} else {
			f.counts[text] = n - median
		}
	}
	f.missed += median
}

// topValues returns the n most frequent texts. It leaves out texts that are frequent only by
// chance: the count of any text may be too low by missed.
func (f *frequencies) topValues(n int) []TopValue {
	var top []TopValue
	for text, count := range f.counts {
		if count <= f.missed {
			continue
		}
		top = append(top, TopValue{Value: text, Count: count, Missed: f.missed})
	}
	slices.SortFunc(top, func(a, b TopValue) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	})
	return top[:min(n, len(top))]
}

// distinct estimates how many different texts there are (HyperLogLog). Its error is about two
// percent.
type distinct struct {
	seed      maphash.Seed
	registers [1 << distinctBits]uint8
}

const distinctBits = 11

func newDistinct(seed maphash.Seed) *distinct { return &distinct{seed: seed} }

func (d *distinct) add(text string) {
	hash := maphash.String(d.seed, text)
	register := hash >> (64 - distinctBits)
	rank := uint8(bits.LeadingZeros64(hash<<distinctBits|1<<(distinctBits-1)) + 1)
	d.registers[register] = max(d.registers[register], rank)
}

func (d *distinct) estimate() int64 {
	sum, empty := 0.0, 0
	for _, rank := range d.registers {
		sum += math.Ldexp(1, -int(rank))
		if rank == 0 {
			empty++
		}
	}
	n := float64(len(d.registers))
	estimate := 0.7213 / (1 + 1.079/n) * n * n / sum
	if estimate <= 2.5*n && empty > 0 {
		estimate = n * math.Log(n/float64(empty))
	}
	return int64(math.Round(estimate))
}
