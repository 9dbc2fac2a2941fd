package shrinkmap

import (
	"runtime"
	"testing"
)

// A map behaves as a Go map while it grows and shrinks.
func TestMap(t *testing.T) {
	const many = 10_000
	var m Map[int, int]
	if m.Get(1) != 0 || m.Len() != 0 {
		t.Fatal("the zero value is not empty")
	}
	for round := range 2 {
		for i := range many {
			m.Put(i, i+round)
		}
		for i := range many {
			if i%100 != 0 {
				m.Delete(i)
				m.Delete(i) // does nothing
			}
		}
		if m.Len() != many/100 {
			t.Fatalf("%d entries are left, want %d", m.Len(), many/100)
		}
		sum := 0
		for v := range m.Values() {
			sum += v
		}
		if want := (many/100)*(many-100)/2 + round*many/100; sum != want {
			t.Fatalf("the values' sum is %d, want %d", sum, want)
		}
		if m.Get(200) != 200+round || m.Get(201) != 0 {
			t.Fatalf("round %d: 200 is %d, 201 is %d", round, m.Get(200), m.Get(201))
		}
	}
}

// The memory of entries that are gone is free.
func TestShrinks(t *testing.T) {
	const many = 100_000
	heap := func() int {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int(stats.HeapAlloc)
	}
	var m Map[int, [4]int]
	before := heap()
	for i := range many {
		m.Put(i, [4]int{})
	}
	for i := range many {
		m.Delete(i)
	}
	if grown := heap() - before; grown > 64<<10 {
		t.Errorf("an empty map holds %d bytes", grown)
	}
	runtime.KeepAlive(&m)
}
