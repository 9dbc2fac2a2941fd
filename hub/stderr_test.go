package hub_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// role adds to what children do, and returns its name.
func role(name string, do func()) string {
	faults[name] = do
	return name
}

var chatter = []string{"INFO: all is well", "WARN: it is not", "ERROR: an information leak", "Error: Cannot find module 'x'", "Bearer hush-hush"}

var (
	noisy = role("noisy", func() {
		fmt.Fprintln(os.Stderr, strings.Join(chatter, "\n"))
		_ = stdio.Serve(context.Background(), echo("noisy"))
	})
	lastWords = role("last words", func() {
		fmt.Fprintln(os.Stderr, "INFO: it begins\nfatal: the table information is gone\nINFO: bye")
		os.Exit(3)
	})
)

// What a server writes to stderr is shown as it is, and is no judgement of its state; secrets in it are nobody's.
func TestStderrIsNoState(t *testing.T) {
	d := hub.Definition{Name: "noisy", Target: faulty(noisy), Mask: strings.NewReplacer("hush-hush", "****").Replace}
	h := start(t, hub.Options{Logger: quiet}, d)
	settled(t, h)
	u := h.Upstream("noisy")
	want := append(slices.Clone(chatter[:4]), "Bearer ****")
	until(t, "all of it has come", func() bool { return slices.Equal(u.Stderr(), want) })
	if s := u.State(); s.Status != hub.Ready || s.Err != nil || s.Diagnosis != nil {
		t.Errorf("%+v", s)
	}
	u.Restart("the test wants it")
	settled(t, h)
	until(t, "it is said again", func() bool { return slices.Equal(u.Stderr(), append(want, want...)) })
	var history []string
	for _, e := range u.History() {
		switch {
		case e.Kind == hub.StateChanged:
			history = append(history, e.State.Status.String())
		case e.Line == want[0]:
			history = append(history, e.Line)
		}
		if e.Upstream != "noisy" || e.Time.IsZero() {
			t.Errorf("%+v", e)
		}
	}
	history = slices.DeleteFunc(history, func(s string) bool { return s == "ready" }) // which may be before the line or after it
	if want := []string{"starting", want[0], "starting", want[0]}; !slices.Equal(history, want) {
		t.Errorf("%q", history)
	}
}

// What a server says before it dies explains its death, whatever it says besides.
func TestLastWords(t *testing.T) {
	h := start(t, hub.Options{MinBackoff: time.Hour, Logger: quiet}, hub.Definition{Name: "s", Target: faulty(lastWords)})
	settled(t, h)
	s := h.Upstream("s").State()
	if s.Status != hub.Failed || s.Diagnosis == nil || !strings.Contains(s.Diagnosis.Summary, "fatal: the table information is gone") {
		t.Errorf("%+v", s)
	}
	if got := h.Upstream("s").Stderr(); len(got) < 3 || got[2] != "INFO: bye" { // it is started twice, for it may have died of the probe
		t.Errorf("%q", got)
	}
}
