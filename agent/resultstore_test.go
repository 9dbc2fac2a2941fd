package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestShelfInAFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "results")
	var s resultStore
	s.openFolder(folder)
	if _, err := os.Stat(folder); err == nil {
		t.Error("the folder was made before it was needed")
	}
	first, second := strings.Repeat("a", 1000), strings.Repeat("b", 2000)
	one, two := s.storeText(first), s.storeText(second)
	if one == two || s.storeText(first) != one {
		t.Errorf("the names are %s, %s and %s", one, two, s.storeText(first))
	}
	if info, err := os.Stat(filepath.Join(folder, one+".txt")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if s.texts[one].text != "" {
		t.Error("what is in a file is in memory, too")
	}

	var again resultStore // of the conversation that is taken up again
	again.openFolder(folder)
	if text, err := again.loadText(two); err != nil || text != second {
		t.Errorf("%.20q, %v", text, err)
	}
	if three := again.storeText("c"); three == one || three == two {
		t.Errorf("%s is taken", three)
	}
	if err := os.Remove(filepath.Join(folder, one+".txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := again.loadText(one); err == nil || !strings.Contains(err.Error(), "call its tool again") {
		t.Errorf("got %v", err)
	}
	if _, err := again.loadText("result-99"); err == nil || !strings.Contains(err.Error(), two) {
		t.Errorf("got %v", err)
	}
}

// If the folder cannot be written to, texts stay in memory.
func TestUnwritableStore(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var s resultStore
	s.openFolder(folder)
	if text, err := s.loadText(s.storeText("kept")); text != "kept" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

func TestShelfForgetsTheOldest(t *testing.T) {
	var s resultStore
	big := strings.Repeat("x", maxInMemory/2)
	one := s.storeText(big + "1")
	two := s.storeText(big + "2")
	if _, err := s.loadText(one); err == nil {
		t.Error("the oldest is there still")
	}
	if text, err := s.loadText(two); err != nil || len(text) != len(big)+1 {
		t.Error(err)
	}
	if s.size != len(big)+1 || len(s.names) != 1 || len(s.nameBySum) != 1 {
		t.Errorf("%d bytes, %v, %d known", s.size, s.names, len(s.nameBySum))
	}
}
