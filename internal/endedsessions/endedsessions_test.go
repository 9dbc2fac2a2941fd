package endedsessions

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func (s *Store) save(t *testing.T, key, data string, final bool, until time.Time) {
	t.Helper()
	if err := s.Save(t.Context(), key, []byte(data), final, until); err != nil {
		t.Fatal(err)
	}
}

func (s *Store) expect(t *testing.T, key, want string) {
	t.Helper()
	if got, err := s.Load(t.Context(), key); err != nil || string(got) != want {
		t.Errorf("%s is %q, %v, want %q", key, got, err, want)
	}
}

// The end of a session is there after a restart, until the session would have expired. A line that
// was cut off by the end of the process harms no other one.
func TestEndsOutliveProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "ended")
	soon, later := time.Now().Add(-time.Second), time.Now().Add(time.Hour)
	s := open(t, path)
	s.save(t, "a", `{"used":1}`, false, later)
	s.expect(t, "a", `{"used":1}`)
	s.save(t, "a", `{"ended":true}`, true, later)
	s.save(t, "a", `{"used":2}`, false, later)
	s.save(t, "b", `{"ended":true}`, true, soon)
	s.save(t, "c", `{"used":1}`, false, later)
	s.expect(t, "a", string(endedRecord))
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 2 {
		t.Fatalf("%q, %v", text, err)
	}
	if err := os.WriteFile(path, append(text, "d 17"...), 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	s.save(t, "e", "", true, later)
	s = open(t, path)
	s.expect(t, "a", string(endedRecord))
	s.expect(t, "b", "")
	s.expect(t, "c", "")
	s.expect(t, "e", string(endedRecord))
	if text, _ := os.ReadFile(path); strings.Count(string(text), "\n") != 2 {
		t.Errorf("the file is %q", text)
	}
}

// Neither the file nor the memory keeps what has expired.
func TestEndsExpire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ended")
	s := open(t, path)
	for i := range 10 * fewLines {
		s.save(t, fmt.Sprint(i), "", true, time.Now().Add(-time.Hour))
		s.save(t, fmt.Sprint("r", i), "x", false, time.Now().Add(-time.Hour))
	}
	if text, _ := os.ReadFile(path); strings.Count(string(text), "\n") > 2*fewLines || len(s.ended)+len(s.records) > 2*fewLines {
		t.Errorf("%d lines, %d ends, %d records", strings.Count(string(text), "\n"), len(s.ended), len(s.records))
	}
}
