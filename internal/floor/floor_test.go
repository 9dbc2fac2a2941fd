package floor

import (
	"strings"
	"testing"
)

func BenchmarkCallMemory(b *testing.B) {
	near, far := Memory()
	served := make(chan struct{})
	go func() { defer close(served); Serve(far, 4) }()
	c := NewClient(near)
	b.ReportAllocs()
	for b.Loop() {
		if c.Call("hello") != "hello" {
			b.Fatal("wrong answer")
		}
	}
	c.Close()
	<-served
}

func TestFloor(t *testing.T) {
	near, far := Memory()
	served := make(chan struct{})
	go func() { defer close(served); Serve(far, 4) }()
	c := NewClient(near)
	for _, message := range []string{"hello", "", "a\n\"b\"", strings.Repeat("x", 1<<20)} {
		if got := c.Call(message); got != message {
			t.Errorf("got %.20q, want %.20q", got, message)
		}
	}
	c.Close()
	<-served
}
