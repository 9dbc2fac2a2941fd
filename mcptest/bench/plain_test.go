package bench

import "testing"

// BenchmarkPlainCall is one small call in memory, for profiles.
func BenchmarkPlainCall(b *testing.B) {
	c := dowelOver(b, "memory")
	b.ReportAllocs()
	for b.Loop() {
		callEcho(b, c, "hello")
	}
}
