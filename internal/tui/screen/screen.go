// Package screen is the full screen of a conversation: the transcript, the input, and the status
// line. It knows neither models nor servers: messages such as [Said] and [CallStarted] tell it what
// happens, and a [Host] does what the user wants. [Ticked] tells it the time.
package screen

import (
	"os/exec"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/dowel-mcp/dowel/internal/tui/composer"
	"github.com/dowel-mcp/dowel/internal/tui/form"
	"github.com/dowel-mcp/dowel/internal/tui/statusline"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
	"github.com/dowel-mcp/dowel/internal/tui/toolcard"
	"github.com/dowel-mcp/dowel/internal/tui/transcript"
)

// Host does what the user wants. Set all fields. The functions must return at once, except Complete
// and MentionImage, which may take their time.
type Host struct {
	// Submit takes a message or a command. [Taken] tells the screen when it begins.
	Submit func(text string)
	// Stop stops the current work.
	Stop func()
	// Interrupt stops the current work like Stop, or ends the program if it is pressed twice.
	Interrupt func()
	// End ends the conversation.
	End func()
	// Complete completes a draft as far as possible.
	Complete func(draft string, at int) (longer string, to int, choices []string)
	// MentionImage returns the mention that attaches the image file with a pasted path. ok is false
	// if the text is no such path.
	MentionImage func(pasted string) (mention string, ok bool)
	// FollowWire begins to tell [Framed] messages, or tells [WireFailed]. It is called whenever the
	// wire pane opens.
	FollowWire func()
	// Ended is closed when the program ends from outside.
	Ended <-chan struct{}
	// EditLast takes the user's last message back. [Drafted] puts it into the input.
	EditLast func()
	// OpenEditor returns a program that edits a text, and a function that returns the edited text
	// when the program has ended with err.
	OpenEditor func(text string) (program *exec.Cmd, read func(err error) (string, error), err error)
}

// Model is the screen. Make one with [New].
type Model struct {
	// Transcript has the messages. It is exported for tests.
	Transcript transcript.Transcript

	host     Host
	composer *composer.Composer
	status   statusline.Status
	theme    *theme.Theme
	chosen   Theme // by the user; "" means Auto
	isDark   bool  // the background that the terminal reports

	width, height int
	expanded      bool
	wire          wirePane
	pictures      pictures
	queue         []string // submitted messages that wait
	asks          []Asked  // the first one is on the screen
	isAsideAsk    bool     // the user writes on before the form gets the keys
	held          heldInput
	isEscaped     bool // the last key was Esc, and it had nothing to do

	reply    *transcript.Reply
	thought  *transcript.Thought
	output   *transcript.Output
	calls    map[string]*runningCall
	activity string
	begun    time.Time // when activity began
	now      time.Time // of the last Ticked
}

// runningCall is a call with the time of its start.
type runningCall struct {
	card  *toolcard.Card
	begun time.Time
}

// Hints in the status line.
const (
	hint        = "/help lists commands"
	escapedHint = "Esc again edits your last message"
)

// New returns an empty screen. isDark says what the background is until the terminal reports it.
func New(host Host, isDark bool, now time.Time) *Model {
	return &Model{
		host: host, composer: composer.New(), theme: theme.New(isDark), isDark: isDark, calls: map[string]*runningCall{},
		width: 80, height: 24, now: now,
		status: statusline.Status{Hint: hint},
	}
}

// Init implements [tea.Model].
func (m *Model) Init() tea.Cmd { return tea.RequestBackgroundColor }

// Update implements [tea.Model].
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		m.isDark = msg.IsDark()
		m.applyTheme()
	case tea.KeyPressMsg:
		if m.holdInput(msg) {
			return m, nil
		}
		return m, m.press(msg)
	case tea.PasteMsg:
		if m.holdInput(msg) {
			return m, nil
		}
		return m, m.paste(msg.Content)
	case pasted:
		return m, m.endPaste(msg)
	case completed:
		m.composer.Complete(msg.draft, msg.at, msg.longer, msg.to, msg.choices)
	case edited:
		m.endEditor(msg)
		return m, m.transmitAll()
	case CompleteAgain:
		return m, m.complete()
	case Batch:
		return m, m.updateAll(msg)
	case Closed:
		return m, tea.Quit
	case CallEnded:
		return m, m.addPictures(m.endCall(msg))
	default:
		if command, ok := m.updatePictures(msg); ok {
			return m, command
		}
		m.show(msg)
	}
	return m, nil
}

// Theme says for which background the colours are.
type Theme string

// The themes.
const (
	Dark  Theme = "dark"
	Light Theme = "light"
	Auto  Theme = "auto" // the background that the terminal reports
)

func (m *Model) applyTheme() {
	m.theme = theme.New(m.chosen == Dark || m.chosen != Light && m.isDark)
}

// updateAll handles several messages.
func (m *Model) updateAll(all Batch) tea.Cmd {
	var commands []tea.Cmd
	for _, msg := range all {
		_, command := m.Update(msg)
		commands = append(commands, command)
	}
	return tea.Batch(commands...)
}

// form returns the form that gets the keys, or nil.
func (m *Model) form() *form.Form {
	if len(m.asks) == 0 || m.isAsideAsk {
		return nil
	}
	return m.asks[0].Form
}

// press handles a key.
func (m *Model) press(press tea.KeyPressMsg) tea.Cmd {
	if press.String() == "alt+esc" { // two presses of Esc that arrive together, as over a slow connection
		once := tea.KeyPressMsg{Code: tea.KeyEscape}
		return tea.Batch(m.press(once), m.press(once))
	}
	wasEscaped := m.isEscaped
	m.isEscaped, m.status.Hint = false, hint
	switch press.String() {
	case "ctrl+z":
		return tea.Suspend
	case "ctrl+c":
		m.pressInterrupt()
		return nil
	case "f12":
		if m.wire.isOpen = !m.wire.isOpen; m.wire.isOpen {
			m.host.FollowWire()
		}
		return nil
	case "f3":
		return m.openPicture(0)
	case "ctrl+o":
		m.expanded = !m.expanded
		return nil
	}
	if f := m.form(); f != nil {
		if result := f.Press(press); result != nil {
			m.endAsk(result.Word)
		}
		return nil
	}
	if press.String() == "ctrl+g" && !m.composer.IsSearching() {
		return m.openEditor()
	}
	switch m.composer.Press(press) {
	case composer.Sent:
		m.submit(m.composer.Take())
		return nil
	case composer.Edited:
		if m.isAsideAsk && m.composer.IsEmpty() {
			m.isAsideAsk = false
		}
		return m.completeCommand()
	case composer.Ignored:
	}
	if press.String() == "esc" {
		m.pressEscape(wasEscaped)
		return nil
	}
	return m.pressIgnored(press)
}

// pressEscape hides completions, shows the end, or stops what runs. If nothing runs, a second Esc
// edits the last message.
func (m *Model) pressEscape(wasEscaped bool) {
	switch isIdle := m.activity == "" && len(m.queue) == 0 && m.composer.IsEmpty(); {
	case m.composer.HideChoices():
	case m.Transcript.IsScrolled():
		m.Transcript.ScrollToEnd()
	case isIdle && wasEscaped:
		m.host.EditLast()
	default:
		if isIdle {
			m.isEscaped, m.status.Hint = true, escapedHint
		}
		m.host.Stop()
	}
}

// pressInterrupt clears the input first, like a shell, unless something runs.
func (m *Model) pressInterrupt() {
	if m.activity == "" && len(m.asks) == 0 && !m.composer.IsEmpty() {
		m.composer.Clear()
		return
	}
	m.host.Interrupt()
}

// pressIgnored handles a key that the input does not use.
func (m *Model) pressIgnored(press tea.KeyPressMsg) tea.Cmd {
	page := max(m.transcriptHeight()-2, 1)
	switch press.String() {
	case "tab":
		if m.isAsideAsk {
			m.isAsideAsk = false
			return nil
		}
		return m.complete()
	case "pgup":
		m.Transcript.Scroll(-page, m.transcriptHeight())
	case "pgdown":
		m.Transcript.Scroll(page, m.transcriptHeight())
	case "ctrl+home":
		m.Transcript.ScrollToStart()
	case "ctrl+end":
		m.Transcript.ScrollToEnd()
	}
	if press.String() == "ctrl+d" && m.composer.IsEmpty() {
		m.host.End()
	}
	return nil
}

// submit hands a message to the host. It waits in the queue until the host takes it.
func (m *Model) submit(text string) {
	m.queue = append(m.queue, text)
	m.Transcript.ScrollToEnd()
	m.host.Submit(text)
}

// completed is the answer of Host.Complete.
type completed struct {
	draft, longer string
	at, to        int
	choices       []string
}

// complete asks the host for completions.
func (m *Model) complete() tea.Cmd {
	draft, at := m.composer.Draft()
	return func() tea.Msg {
		longer, to, choices := m.host.Complete(draft, at)
		return completed{draft, longer, at, to, choices}
	}
}

// completeCommand shows the commands that begin with the draft, and changes nothing.
func (m *Model) completeCommand() tea.Cmd {
	draft, at := m.composer.Draft()
	if !strings.HasPrefix(draft, "/") || strings.HasPrefix(draft, "//") || strings.ContainsAny(draft, " \n") {
		return nil
	}
	return func() tea.Msg {
		_, _, choices := m.host.Complete(draft, at)
		return completed{draft, draft, at, at, choices}
	}
}
