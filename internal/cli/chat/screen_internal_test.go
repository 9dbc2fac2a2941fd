package chat

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/tui/screen"
)

// crashingReader panics in place of the loop of a conversation.
type crashingReader struct{}

func (crashingReader) ReadLine(context.Context, term.Question) (string, error) { panic("a crash") }

// A panic of the loop restores the terminal before it ends the program.
func TestScreenCrash(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var out bytes.Buffer
	c := &conversation{app: &factory.Factory{Stdout: term.NewScreen(&out, nil)}, in: crashingReader{}, interrupts: &interruptHandler{endProgram: func(error) {}}}
	c.ctx, c.cancel = context.WithCancelCause(t.Context())
	c.out, c.side = c.app.Stdout, c.app.Stdout
	s := &fullScreen{posted: make(chan struct{}, 1), submitted: make(chan struct{}, 1), leave: func() {}}
	c.view = newScreenView(s.post, false)
	s.program = tea.NewProgram(screen.New(screen.Host{}, true, time.Now()), tea.WithInput(nil), tea.WithOutput(&out), tea.WithWindowSize(80, 24), tea.WithoutSignalHandler())
	defer func() {
		cause := fmt.Sprint(recover())
		if !strings.HasPrefix(cause, "a crash\n") || !strings.Contains(cause, "crashingReader") {
			t.Errorf("recovered %s", cause)
		}
		if text := out.String(); strings.LastIndex(text, "\x1b[?1049l") < strings.LastIndex(text, "\x1b[?1049h") {
			t.Errorf("the terminal is not restored: %q", text)
		}
		c.background.Wait()
	}()
	_ = s.runConversation(c)
	t.Error("the panic is lost")
}
