package interop

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/interop/peers/contract"
)

// Tests of dowel up for a user who has used other tools before: servers of all kinds in the files
// of five tools and in dowel's own, and clients of both eras that use them at the same time.

func TestUp(t *testing.T) {
	r := newResident(t)
	paths := r.writeConfigs()
	r.runDowel("import", "--from", strings.Join(otherTools, ","), "--yes")
	r.runDowel("trust", "files", "--yes")
	if text, err := os.ReadFile(paths[0]); err != nil || !strings.Contains(string(text), ownComment) {
		t.Errorf("after the import dowel.json is %s, %v", text, err)
	}
	url := r.startDowel(residentServers)
	want := expectedOf(r.project)
	prepare(t, url)
	t.Run("clients", func(t *testing.T) {
		words, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		for _, sdk := range []string{"v1", "v2"} {
			t.Run("TypeScript "+sdk, func(t *testing.T) {
				t.Parallel()
				runClient(t, "node", scriptPath(t, "up.mjs"), sdk, url, string(words))
			})
		}
		for _, revision := range []string{modernRevision, "2025-11-25"} {
			t.Run("Go "+revision, func(t *testing.T) {
				t.Parallel()
				useResident(t, url, revision, want)
			})
		}
	})
	// Every client has cancelled one call, and the server has received each cancellation.
	c := newGuest(t, "last", url, modernRevision)
	if text, err := c.call(toolCall{Tool: "modern__" + contract.Cancelled}, nil); err != nil || !strings.Contains(text, `"4"`) {
		t.Errorf("calls that were cancelled: %s, %v, want 4", text, err)
	}
	for _, ask := range []toolCall{
		{Tool: "old__trigger-elicitation-request"}, {Tool: "old__trigger-sampling-request", Args: map[string]any{"prompt": "Name a city."}},
	} {
		if got, err := c.call(ask, nil); err != nil || !strings.Contains(got, c.name) {
			t.Errorf("%s: %s, %v, want the answer of %s in it", ask.Tool, got, err, c.name)
		}
	}
	c.close()
	r.awaitReady(residentServers)
	r.stopDowel(residentProcesses)
}

// With flags that name them, dowel reads the same files in their places, each in its format.
func TestUpReadsFilesOfOtherTools(t *testing.T) {
	r := newResident(t)
	var words []string
	for _, path := range r.writeConfigs() {
		words = append(words, "--config", path)
	}
	url := r.startDowel(residentServers, words...)
	c := newGuest(t, "reader", url, modernRevision)
	c.checkLists(expectedOf(r.project))
	c.close()
	r.stopDowel(residentProcesses)
}

// prepare sets up the servers that all clients share.
func prepare(t *testing.T, url string) {
	t.Helper()
	c := newGuest(t, "first", url, modernRevision)
	defer c.close()
	entity := map[string]any{"name": "Ada", "entityType": "person", "observations": []string{"wrote the first program"}}
	for _, call := range []toolCall{
		{Tool: "memory__create_entities", Args: map[string]any{"entities": []any{entity}}},    // concurrent writes would lose entities
		{Tool: "stream__toggle-subscriber-updates"}, {Tool: "old__toggle-subscriber-updates"}, // a switch for the whole session
	} {
		if _, err := c.call(call, nil); err != nil {
			t.Fatalf("%s: %v", call.Tool, err)
		}
	}
}
