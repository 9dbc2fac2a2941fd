package screen

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/dowel-mcp/dowel/internal/tui/form"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
	"github.com/dowel-mcp/dowel/internal/tui/toolcard"
	"github.com/dowel-mcp/dowel/internal/tui/transcript"
)

// randomSteps is the number of keys and messages of a run of the test.
const randomSteps = 1000

// Whatever the user presses and the host tells, the screen keeps its size and its cursor, and
// leaves nothing behind. With DOWEL_RANDOM_KEYS=30m the test runs for that time, with other keys in
// each run.
func TestScreenRandomKeys(t *testing.T) {
	seed, end := uint64(1), time.Time{}
	if text := os.Getenv("DOWEL_RANDOM_KEYS"); text != "" {
		limit, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("DOWEL_RANDOM_KEYS: %v", err)
		}
		seed, end = uint64(time.Now().UnixNano()), time.Now().Add(limit)
	}
	playRandomly(t, seed) // fills the caches that the process keeps
	before := measureUse()
	runs := 0
	for ; !t.Failed() && (runs < leastRuns || time.Now().Before(end)); runs++ {
		seed++
		playRandomly(t, seed)
	}
	after := measureUse()
	t.Logf("%d screens of %d steps: %d → %d goroutines, %.1f → %.1f MiB on the heap", runs, randomSteps,
		before.goroutines, after.goroutines, float64(before.heap)/(1<<20), float64(after.heap)/(1<<20))
	if after.goroutines > before.goroutines {
		t.Errorf("%d goroutines are left behind", after.goroutines-before.goroutines)
	}
	if after.heap > before.heap+maxHeapGrowth {
		t.Errorf("the heap has grown from %d to %d bytes", before.heap, after.heap)
	}
}

const (
	leastRuns     = 2       // after the first one
	maxHeapGrowth = 2 << 20 // in bytes; one screen holds more at its end
)

// use is what the process holds.
type use struct {
	goroutines int
	heap       uint64 // in bytes
}

// measureUse collects garbage and returns what is left.
func measureUse() use {
	runtime.GC()
	runtime.GC() // the first one runs finalizers
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return use{runtime.NumGoroutine(), stats.HeapAlloc}
}

// playRandomly presses random keys on a new screen, between random messages of the host.
func playRandomly(t *testing.T, seed uint64) {
	step := 0
	defer func() {
		if cause := recover(); cause != nil {
			t.Errorf("seed %d, step %d: %v", seed, step, cause)
			panic(cause)
		}
	}()
	random := rand.New(rand.NewPCG(seed, 0))
	d := newDriver(t)
	d.known = []string{"/servers", "/save", "/tools"}
	d.send(kittyAnswers...)
	shot := newPicture(t, "file:///tmp/1.png")
	names := slices.Sorted(maps.Keys(keys)) // sorted, so that a seed repeats its run
	for ; step < randomSteps && !t.Failed(); step++ {
		switch n := random.IntN(100); {
		case n < 40:
			d.press(names[random.IntN(len(names))])
		case n < 70:
			d.press(string([]rune("aé漢🙂 /@\\x")[random.IntN(9)]))
		case n < 73:
			d.send(tea.WindowSizeMsg{Width: 1 + random.IntN(120), Height: 1 + random.IntN(40)})
		case n < 76:
			d.send(tea.PasteMsg{Content: strings.Repeat("pasted 漢字\n", random.IntN(30))})
		case n < 77:
			own := *shot.Picture // the screen gives it an ID
			d.send(CallEnded{fmt.Sprint(random.IntN(3)), toolcard.Card{State: toolcard.Succeeded, Pictures: []toolcard.Picture{{Picture: &own, Link: shot.Link}}}})
		default:
			d.send(randomMessage(random))
		}
		checkScreen(t, d.model, fmt.Sprintf("seed %d, step %d", seed, step))
	}
}

// randomMessage returns a message of a host.
func randomMessage(random *rand.Rand) tea.Msg {
	id := fmt.Sprint(random.IntN(3))
	all := []tea.Msg{
		Taken{"a question"}, Said{"a *piece*\n\n"}, Said{"```go\nx := 1\n"}, Said{"| a | b |\n|---|---|\n| 1 | 2 |\n"}, Thought{"hm "}, Replied{}, RunEnded{},
		Noticed{transcript.Trouble, "trouble 漢字"}, Printed{"\x1b[31mred\x1b[0m\n"}, CallStarted{id, toolcard.Card{Tool: "files.read"}}, CallProgressed{id, "1/2"},
		CallEnded{id, toolcard.Card{State: toolcard.Failed, Facts: "no", Result: "line\nline"}}, Working{"thinking"}, ModelChosen{"a model"}, ContextUsed{Used: 10, Window: 100},
		Framed{Call: "files.read", Frame: Frame{IsSent: true, Text: strings.Repeat("{漢} ", 80)}}, WireFailed{"no journal"}, ThemeChosen{Light}, ThemeChosen{Auto}, Drafted{"two\nlines"}, HistoryLoaded{[]string{"earlier", "words\nhere"}}, Ticked{start.Add(time.Duration(random.IntN(1000)) * time.Second)},
		Asked{approval(), func(string) {}}, Asked{&form.Form{Title: "A form", Fields: []form.Field{{Label: "name"}, {Label: "day", Kind: form.OneOf, Choices: []string{"mon", "tue"}}},
			Actions: []form.Action{{Word: "send"}}, Leave: form.Action{Word: "leave"}}, func(string) {}},
	}
	return all[random.IntN(len(all))]
}

// checkScreen checks that all lines and the cursor are inside the terminal.
func checkScreen(t *testing.T, m *Model, when string) {
	t.Helper()
	view := m.View()
	lines := strings.Split(view.Content, "\n")
	if len(lines) > m.height {
		t.Errorf("%s: %d lines on a terminal of %d", when, len(lines), m.height)
	}
	for _, line := range lines {
		if width := theme.Width(line); width > m.width {
			t.Errorf("%s: a line has %d columns of %d: %q", when, width, m.width, line)
		}
	}
	if c := view.Cursor; c != nil && (c.X < 0 || c.Y < 0 || c.X >= m.width || c.Y >= m.height) {
		t.Errorf("%s: the cursor is at %d, %d of %dx%d", when, c.X, c.Y, m.width, m.height)
	}
	if text, at := m.composer.Draft(); at < 0 || at > len(text) {
		t.Errorf("%s: the draft has %d bytes and the cursor is at %d", when, len(text), at)
	}
}
