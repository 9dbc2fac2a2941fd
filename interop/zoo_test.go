package interop

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/interop/zoo"
)

func TestZoo(t *testing.T) {
	folder, err := filepath.Abs("zoo")
	if err != nil {
		t.Fatal(err)
	}
	for _, animal := range zoo.Animals {
		t.Run(strings.TrimSuffix(animal.Script, filepath.Ext(animal.Script)), func(t *testing.T) {
			t.Parallel()
			callAnimal(t, animal, folder)
		})
	}
}

// callAnimal calls the tool of a server and checks the outcome.
func callAnimal(t *testing.T, animal zoo.Animal, folder string) {
	c := newCLI(t)
	out := c.runWith(animal.Command(folder), "call", "echo", "message=grüße aus dem zoo")
	said := out.stdout + out.stderr
	switch {
	case animal.Fails == "" && (out.code != 0 || !strings.Contains(out.stdout, "grüße aus dem zoo")):
		t.Errorf("the call must work (%s), got exit code %d\nstdout: %s\nstderr: %s",
			animal.Why, out.code, shorten(out.stdout), shorten(out.stderr))
	case animal.Fails != "" && out.code == 0:
		t.Errorf("the call must fail (%s), got %s", animal.Why, shorten(out.stdout))
	case animal.Fails != "" && !regexp.MustCompile(animal.Fails).MatchString(said):
		t.Errorf("the error must match %q (%s), got %s", animal.Fails, animal.Why, shorten(said))
	}
	if out.took > animal.Limit {
		t.Errorf("it took %v, longer than %v", out.took, animal.Limit)
	}
}

// The table names all scripts in the folder, and no others.
func TestZooIsWhole(t *testing.T) {
	listed := map[string]bool{"server.mjs": true, "zoo.go": true}
	for _, animal := range zoo.Animals {
		listed[animal.Script] = true
	}
	files, err := os.ReadDir("zoo")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !listed[file.Name()] {
			t.Errorf("zoo/%s is in no table", file.Name())
		}
		delete(listed, file.Name())
	}
	for name := range listed {
		t.Errorf("zoo/%s does not exist", name)
	}
}
