package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestShelfInAFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "results")
	var s shelf
	s.open(folder)
	if _, err := os.Stat(folder); err == nil {
		t.Error("the folder was made before it was needed")
	}
	first, second := strings.Repeat("a", 1000), strings.Repeat("b", 2000)
	one, two := s.put(first), s.put(second)
	if one == two || s.put(first) != one {
		t.Errorf("the names are %s, %s and %s", one, two, s.put(first))
	}
	if info, err := os.Stat(filepath.Join(folder, one+".txt")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if s.texts[one].text != "" {
		t.Error("what is in a file is in memory, too")
	}

	var again shelf // of the conversation that is taken up again
	again.open(folder)
	if text, err := again.get(two); err != nil || text != second {
		t.Errorf("%.20q, %v", text, err)
	}
	if three := again.put("c"); three == one || three == two {
		t.Errorf("%s is taken", three)
	}
	if err := os.Remove(filepath.Join(folder, one+".txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := again.get(one); err == nil || !strings.Contains(err.Error(), "call its tool again") {
		t.Errorf("got %v", err)
	}
	if _, err := again.get("result-99"); err == nil || !strings.Contains(err.Error(), two) {
		t.Errorf("got %v", err)
	}
}

// Where nothing can be written, nothing is lost.
func TestShelfThatCannotBeWritten(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var s shelf
	s.open(folder)
	if text, err := s.get(s.put("kept")); text != "kept" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

func TestShelfForgetsTheOldest(t *testing.T) {
	var s shelf
	big := strings.Repeat("x", maxInMemory/2)
	one := s.put(big + "1")
	two := s.put(big + "2")
	if _, err := s.get(one); err == nil {
		t.Error("the oldest is there still")
	}
	if text, err := s.get(two); err != nil || len(text) != len(big)+1 {
		t.Error(err)
	}
	if s.size != len(big)+1 || len(s.names) != 1 || len(s.known) != 1 {
		t.Errorf("%d bytes, %v, %d known", s.size, s.names, len(s.known))
	}
}
