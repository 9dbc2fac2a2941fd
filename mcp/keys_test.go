package mcp_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
)

func longSecret(fill string) []byte { return []byte(strings.Repeat(fill, 32)) }

// Sealers that exist use the secrets of now, and the order of the secrets decides which one seals.
func TestReplaceKeys(t *testing.T) {
	keys, err := mcp.NewKeys(longSecret("a"))
	if err != nil {
		t.Fatal(err)
	}
	onlyB, _ := mcp.NewKeys(longSecret("b"))
	sealer, other := keys.For("test"), onlyB.For("test")
	byA := sealer.Seal([]byte("first"), nil)
	replace := func(secrets ...[]byte) {
		t.Helper()
		if err := keys.Replace(secrets...); err != nil {
			t.Fatal(err)
		}
	}
	replace(longSecret("a"), longSecret("b"))
	if _, err := other.Open(sealer.Seal([]byte("x"), nil), nil); err == nil {
		t.Error("a secret at the end seals already")
	}
	if got, err := sealer.Open(other.Seal([]byte("x"), nil), nil); err != nil || string(got) != "x" {
		t.Errorf("a secret at the end does not open: %v", err)
	}
	replace(longSecret("b"), longSecret("a"))
	if _, err := other.Open(sealer.Seal([]byte("x"), nil), nil); err != nil {
		t.Error("the secret at the front does not seal")
	}
	if got, err := sealer.Open(byA, nil); err != nil || string(got) != "first" {
		t.Errorf("an old secret does not open: %q, %v", got, err)
	}
	replace(longSecret("b"))
	if _, err := sealer.Open(byA, nil); err == nil {
		t.Error("a removed secret opens")
	}
	if keys.Replace() == nil || keys.Replace([]byte("short")) == nil {
		t.Error("no secret, or a short one, was accepted")
	}
	if _, err := other.Open(sealer.Seal([]byte("x"), nil), nil); err != nil {
		t.Error("a failed Replace has changed the secrets")
	}
}

// The zero value has a secret of its own, the same for all its sealers.
func TestZeroKeys(t *testing.T) {
	var keys, others mcp.Keys
	var all [8]string
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i] = keys.For("test").Seal([]byte("x"), nil) })
	}
	wg.Wait()
	for _, sealed := range all {
		if got, err := keys.For("test").Open(sealed, nil); err != nil || string(got) != "x" {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := others.For("test").Open(sealed, nil); err == nil {
			t.Error("other keys open it")
		}
	}
}

func TestSealAllocatesNoKeys(t *testing.T) {
	var keys mcp.Keys
	sealer := keys.For("test")
	sealed := sealer.Seal([]byte("x"), nil)
	if n := testing.AllocsPerRun(100, func() { _, _ = sealer.Open(sealed, nil) }); n > 4 {
		t.Errorf("Open allocates %v times, want only the text and the plain bytes", n)
	}
}
