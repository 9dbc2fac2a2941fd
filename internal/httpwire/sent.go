package httpwire

import (
	"context"
	"crypto/sha256"
	"net/http"
	"sync"
)

// SentFields records the fields that Header functions added to the requests of one call. They
// tell one authorization context from another.
type SentFields struct {
	mu       sync.Mutex
	hash     string
	requests int
	differ   bool
}

type sentFieldsKey struct{}

// RecordFields returns a context whose requests record their fields in the returned SentFields.
func RecordFields(ctx context.Context) (context.Context, *SentFields) {
	s := new(SentFields)
	return context.WithValue(ctx, sentFieldsKey{}, s), s
}

func (s *SentFields) record(fields http.Header) {
	hash := HashFields(fields)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.differ = s.differ || s.requests > 0 && hash != s.hash
	s.hash = hash
	s.requests++
}

// Hash returns the hash of the recorded fields. requests counts the requests that recorded their
// fields. same is false if these fields differed.
func (s *SentFields) Hash() (hash string, requests int, same bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hash, s.requests, !s.differ
}

// HashFields returns a hash that differs for different fields. It is empty without fields.
func HashFields(fields http.Header) string {
	if len(fields) == 0 {
		return ""
	}
	canonical := make(http.Header, len(fields))
	for name, values := range fields {
		canonical[http.CanonicalHeaderKey(name)] = values
	}
	h := sha256.New()
	_ = canonical.Write(h) // in the order of the names; a hash returns no error
	return string(h.Sum(nil))
}
