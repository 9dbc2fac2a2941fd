package transport

import "sync"

// batch collects the responses to a batch of requests (revision 2025-03-26) and sends them as one.
type batch struct {
	mu   sync.Mutex
	open int // requests not answered yet
	out  []byte
}

// add takes one response, nil for a request that is not answered.
func (b *batch) add(s *server, frame []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if frame != nil {
		if b.out == nil {
			b.out = append(b.out, '[')
		} else {
			b.out = append(b.out, ',')
		}
		b.out = append(b.out, frame...)
	}
	if b.open--; b.open == 0 && b.out != nil {
		s.write(append(b.out, ']'))
	}
}
