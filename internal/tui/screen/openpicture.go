package screen

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/dowel-mcp/dowel/internal/tui/picture"
	"github.com/muesli/cancelreader"
	"golang.org/x/term"
)

// The renderer does not know the cells that an image of iTerm2 or sixel covers. So such an image is
// shown alone: the renderer leaves the screen, and returns after a key.

// terminal holds facts about the terminal, from its answers and the environment's variables.
type terminal struct {
	isMultiplexed         bool // by tmux or screen
	isITerm2, hasSixel    bool
	name                  string // its answer to XTVERSION
	cellWidth, cellHeight int    // in pixels; 0 means unknown
}

// askCellSize asks the terminal for the size of a cell in pixels.
var askCellSize = ansi.WindowOp(16)

// readEnvironment reads the variables, and asks the terminal for its name and attributes.
func (t *terminal) readEnvironment(env tea.EnvMsg) tea.Cmd {
	t.isMultiplexed, t.isITerm2 = picture.IsMultiplexed(env.Getenv), picture.IsITerm2Environment(env.Getenv)
	switch {
	case env.Getenv("TERM") == "linux", env.Getenv("TERM_PROGRAM") == "Apple_Terminal":
		return nil // they show parts of the question
	case t.isMultiplexed:
		return tea.RequestTerminalVersion
	}
	return tea.Batch(tea.RequestTerminalVersion, tea.Raw(ansi.RequestPrimaryDeviceAttributes))
}

// readAttributes reads the answer to DA1, the primary device attributes.
func (t *terminal) readAttributes(attributes []int) tea.Cmd {
	if t.hasSixel = picture.HasSixel(attributes); !t.hasSixel {
		return nil
	}
	return tea.Raw(askCellSize)
}

// protocol returns the protocol for an image that is shown alone. The name that the terminal has
// answered outweighs the variables.
func (p *pictures) protocol() picture.Protocol {
	t := &p.terminal
	switch {
	case p.isReady:
		return picture.Kitty
	case t.isMultiplexed:
	case picture.IsITerm2(t.name), t.name == "" && t.isITerm2:
		return picture.ITerm2
	case t.hasSixel:
		return picture.Sixel
	}
	return picture.NoProtocol
}

// findPicture returns an image by its number; 0 means the latest.
func (p *pictures) findPicture(number int) *keptPicture {
	for i := range p.kept {
		if one := &p.kept[len(p.kept)-1-i]; number == 0 || one.Number == number {
			return one
		}
	}
	return nil
}

// openPicture shows an image alone until a key is pressed. Another goroutine draws it, because
// sixel is slow.
func (m *Model) openPicture(number int) tea.Cmd {
	one, with := m.pictures.findPicture(number), m.pictures.protocol()
	switch {
	case m.pictures.isDrawing:
		return nil
	case one == nil && number == 0:
		m.addTrouble("no result has an image")
		return nil
	case one == nil:
		m.addTrouble(fmt.Sprintf("image %d is not here: only the latest images can be opened", number))
		return nil
	case with == picture.NoProtocol:
		text := "this terminal shows no images"
		if m.pictures.terminal.isMultiplexed {
			text = "tmux and screen show no images"
		}
		if one.Link != "" {
			text += ": open " + one.Link
		}
		m.addTrouble(text)
		return nil
	}
	area := picture.Area{
		Columns: m.width, Rows: m.height - 1, Background: color.White,
		CellWidth: m.pictures.terminal.cellWidth, CellHeight: m.pictures.terminal.cellHeight,
	}
	if m.isDark {
		area.Background = color.Black
	}
	caption := fmt.Sprintf("%s %d×%d · press a key", one.Format, one.Width, one.Height)
	m.pictures.isDrawing = true
	kept := *one.Picture.Picture // the screen may forget the image meanwhile
	return func() tea.Msg {
		drawn, err := kept.Draw(with, area)
		return pictureDrawn{drawn, caption, err}
	}
}

// pictureDrawn is an image that is ready to be shown alone.
type pictureDrawn struct {
	drawn, caption string
	err            error
}

// showDrawn shows an image alone.
func (m *Model) showDrawn(p pictureDrawn) tea.Cmd {
	m.pictures.isDrawing = false
	if p.err != nil {
		m.addTrouble(p.err.Error())
		return nil
	}
	shown := &pictureScreen{drawn: p.drawn + ansi.CursorPosition(1, m.height) + ansi.Truncate(p.caption, m.width, "…"), ended: m.host.Ended}
	return tea.Exec(shown, func(err error) tea.Msg { return pictureClosed{err} })
}

// pictureClosed is the end of an image that was shown alone.
type pictureClosed struct{ err error }

// closePicture draws the images again that the terminal has lost with the screen.
func (m *Model) closePicture(closed pictureClosed) tea.Cmd {
	if closed.err != nil {
		m.addTrouble("the image cannot be shown: " + closed.err.Error())
	}
	return m.transmitAll()
}

// pictureScreen is a screen with an image. It implements [tea.ExecCommand].
type pictureScreen struct {
	drawn string
	ended <-chan struct{} // closed when the program ends
	in    io.Reader
	out   io.Writer
}

// SetStdin implements [tea.ExecCommand].
func (s *pictureScreen) SetStdin(in io.Reader) { s.in = in }

// SetStdout implements [tea.ExecCommand].
func (s *pictureScreen) SetStdout(out io.Writer) { s.out = out }

// SetStderr implements [tea.ExecCommand].
func (*pictureScreen) SetStderr(io.Writer) {}

// Run shows the image until a key is pressed.
func (s *pictureScreen) Run() (err error) {
	keyboard, ok := s.in.(interface{ Fd() uintptr })
	if !ok {
		return errors.New("the input is no terminal")
	}
	time.Sleep(rendererPause)
	fd := int(keyboard.Fd()) //nolint:gosec // file descriptors are small
	state, err := term.MakeRaw(fd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, term.Restore(fd, state)) }()
	screen := []string{ansi.SetModeAltScreenSaveCursor, ansi.HideCursor, ansi.EraseEntireScreen, ansi.CursorHomePosition, s.drawn}
	if _, err := io.WriteString(s.out, strings.Join(screen, "")); err != nil {
		return err
	}
	err = s.awaitKey()
	_, failed := io.WriteString(s.out, ansi.EraseEntireScreen+ansi.ShowCursor+ansi.ResetModeAltScreenSaveCursor)
	return errors.Join(err, failed)
}

// longestKey bounds the bytes of one key press, and of a paste that is dropped with it.
const longestKey = 4096

// awaitKey reads one key, or waits for the end of the program.
func (s *pictureScreen) awaitKey() error {
	keys, err := cancelreader.NewReader(s.in)
	if err != nil {
		return err
	}
	defer keys.Close()
	pressed, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-s.ended:
			keys.Cancel()
		case <-pressed:
		}
	}()
	_, err = keys.Read(make([]byte, longestKey))
	close(pressed)
	<-watched
	if errors.Is(err, cancelreader.ErrCanceled) {
		return nil
	}
	return err
}
