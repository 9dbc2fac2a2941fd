package data

import (
	"hash/maphash"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestSampleIsBounded(t *testing.T) {
	s := newSample(1000)
	for i := range 100_000 {
		s.add(float64(i))
	}
	if len(s.values) != 1000 || s.isExact() {
		t.Errorf("%d values, exact: %v", len(s.values), s.isExact())
	}
	// The numbers are drawn from a fixed seed: a fair sample of 1000 is within 5 percent.
	for i, q := range s.quantiles(0.05, 0.5, 0.95) {
		if want := []float64{5_000, 50_000, 95_000}[i]; math.Abs(q-want) > 5_000 {
			t.Errorf("quantile %v, want about %v", q, want)
		}
	}
}

func TestFrequenciesAreBounded(t *testing.T) {
	f := newFrequencies(100)
	random := rand.New(rand.NewPCG(3, 4))
	real := 0
	for i := range 50_000 {
		if random.IntN(10) == 0 {
			f.add("often")
			real++
		}
		f.add("rare" + strconv.Itoa(i))
		if len(f.counts) > 101 {
			t.Fatalf("%d texts are kept", len(f.counts))
		}
	}
	top := f.topValues(5)
	if len(top) != 1 || top[0].Value != "often" || top[0].Count > int64(real) || top[0].Count+top[0].Missed < int64(real) {
		t.Errorf("%+v, want often, %d times", top, real)
	}
}

func TestDistinct(t *testing.T) {
	for _, n := range []int{0, 1, 100, 10_000, 200_000} {
		d := newDistinct(maphash.MakeSeed())
		for i := range n {
			d.add(strconv.Itoa(i))
			d.add(strconv.Itoa(i))
		}
		// The standard error is 2.3 percent; 20 percent never happens.
		if got := d.estimate(); math.Abs(float64(got-int64(n))) > 0.2*float64(n) {
			t.Errorf("%d, want about %d", got, n)
		}
	}
}
