package chat

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/tui/screen"
	"github.com/dowel-mcp/dowel/mcp"
)

// fullScreen is a conversation on the whole terminal. The program of the screen runs on the main
// goroutine. runLoop runs beside it, and takes the submitted messages one after the other.
type fullScreen struct {
	program *tea.Program
	leave   func() // gives standard output and error back to the terminal

	mu       sync.Mutex // guards the fields below
	messages []any      // for the screen
	inbox    []string   // submitted by the user
	isEnded  bool       // the user has ended the conversation

	posted, submitted chan struct{} // hold a token after messages or inbox have grown
}

// takeScreen shows the conversation on the whole terminal.
func (c *conversation) takeScreen(in *os.File) {
	s := &fullScreen{posted: make(chan struct{}, 1), submitted: make(chan struct{}, 1)}
	wire := &wireView{post: s.post}
	host := screen.Host{
		FollowWire: func() { c.followWire(wire) },
		Submit:     s.submit, Stop: c.interrupts.stopCurrent, Interrupt: c.pressInterrupt,
		End: s.endConversation, Complete: c.completeInput, OpenEditor: openEditor,
		MentionImage: mentionImage, Ended: c.ctx.Done(),
		EditLast: func() { s.submit("/edit") },
	}
	s.program = tea.NewProgram(screen.New(host, true, time.Now()), tea.WithInput(in), tea.WithOutput(c.app.Stdout.File), tea.WithoutSignalHandler())
	c.lookups.arrived = func() { s.post(screen.CompleteAgain{}) }
	c.interrupts.restore = func() { s.program.Kill(); s.program.Wait() }

	out, side := c.app.Stdout, c.app.Stderr
	c.flags.FollowFrames = true
	c.screen, c.in, c.out, c.side = s, s, out, out
	view := newScreenView(s.post, c.app.IsVerbose())
	c.view = view
	restore := []func(){out.Divert(printer{s})}
	out.HoldStatus(true)
	if side.IsTerminal() {
		restore = append(restore, side.Divert(printer{s}))
		side.HoldStatus(true)
	}
	s.leave = sync.OnceFunc(func() {
		for _, one := range restore {
			one()
		}
		out.HoldStatus(false)
		side.HoldStatus(false)
	})
	c.cleanups = append(c.cleanups, view.pictures.removeFolder, s.leave, c.interrupts.listenSignals())
}

// pressInterrupt handles Ctrl-C on the full screen.
func (c *conversation) pressInterrupt() {
	working := c.interrupts.isWorking()
	if !c.interrupts.handlePress() && !working {
		c.view.Note("Ctrl-D or /quit ends the conversation, and so does Ctrl-C twice")
	}
}

// printer writes the output of commands to the transcript.
type printer struct{ screen *fullScreen }

// Write implements [io.Writer].
func (p printer) Write(text []byte) (int, error) {
	p.screen.post(screen.Printed{Text: string(text)})
	return len(text), nil
}

// runConversation runs the conversation until the user ends it.
func (s *fullScreen) runConversation(c *conversation) error {
	var loopErr error
	var crash string
	stop, loop, pump := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(loop)
		defer s.post(screen.Closed{})
		defer func() {
			if cause := recover(); cause != nil {
				crash = fmt.Sprintf("%v\n\n%s", cause, debug.Stack())
			}
		}()
		loopErr = c.runLoop()
	}()
	go func() {
		defer close(pump)
		s.pumpMessages(stop)
	}()
	id := c.log.ID() // runLoop changes it
	c.background.Go(func() { s.post(screen.HistoryLoaded{All: loadHistory(id)}) })
	_, err := s.program.Run()
	close(stop)
	c.interrupts.markEnding()
	if err != nil {
		c.cancel(err)
	}
	c.cancel(nil)
	<-loop
	<-pump
	s.leave()
	if crash != "" {
		panic(crash) // the terminal is restored
	}
	if err == nil && loopErr == nil && c.log.Session != nil {
		fmt.Fprintln(c.app.Stdout, c.app.Stdout.Dim("saved; continue with dowel chat --resume"))
	}
	if err != nil {
		return err
	}
	return loopErr
}

// post hands a message to the screen. It never blocks.
func (s *fullScreen) post(message any) {
	s.mu.Lock()
	s.messages = append(s.messages, message)
	s.mu.Unlock()
	select {
	case s.posted <- struct{}{}:
	default:
	}
}

// pumpMessages sends the messages to the program. Messages that came meanwhile go together, so that
// many small pieces of a reply are drawn once.
func (s *fullScreen) pumpMessages(stop chan struct{}) {
	for {
		select {
		case <-s.posted:
		case <-stop:
			return
		}
		s.mu.Lock()
		messages := s.messages
		s.messages = nil
		s.mu.Unlock()
		s.program.Send(screen.Batch(messages))
	}
}

// submit takes a message from the user.
func (s *fullScreen) submit(text string) {
	s.mu.Lock()
	s.inbox = append(s.inbox, text)
	s.mu.Unlock()
	s.wakeReader()
}

// endConversation ends the conversation after the submitted messages.
func (s *fullScreen) endConversation() {
	s.mu.Lock()
	s.isEnded = true
	s.mu.Unlock()
	s.wakeReader()
}

func (s *fullScreen) wakeReader() {
	select {
	case s.submitted <- struct{}{}:
	default:
	}
}

// ReadLine implements [lineReader]. It returns the next submitted message, or asks for an answer.
func (s *fullScreen) ReadLine(ctx context.Context, q term.Question) (string, error) {
	if q.Answer {
		return s.askLine(ctx, q)
	}
	for {
		s.mu.Lock()
		inbox, isEnded := s.inbox, s.isEnded
		if len(inbox) > 0 {
			s.inbox = inbox[1:]
		}
		s.mu.Unlock()
		switch {
		case len(inbox) > 0:
			s.post(screen.Taken{Text: inbox[0]})
			return inbox[0], nil
		case isEnded:
			return "", io.EOF
		}
		select {
		case <-s.submitted:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// serversInterval is the time between two looks at the servers for the status line.
const serversInterval = 2 * time.Second

// watchServers keeps the servers of the status line up to date until the conversation ends.
func (c *conversation) watchServers(rt *agentcmd.Runtime) {
	ticker := time.NewTicker(serversInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-c.ctx.Done():
			return
		}
		if servers, err := rt.Servers(c.ctx); err == nil {
			c.view.Servers(servers)
		}
	}
}

// Bounds of the history of earlier sessions.
const (
	maxHistorySessions = 50
	maxHistoryFile     = 4 << 20
	maxHistoryText     = 8 << 10 // longer messages are left out
)

// loadHistory returns what the user wrote in the latest sessions, the oldest first. The messages of
// the session last come at the end.
func loadHistory(last string) (all []string) {
	sessions, err := session.List(factory.SessionsDir())
	if err != nil {
		return nil
	}
	var own []string
	sessions = slices.DeleteFunc(sessions, func(s session.Summary) bool { return s.Scripted })
	sessions = sessions[:min(len(sessions), maxHistorySessions)]
	for i := range sessions {
		one := &sessions[len(sessions)-1-i] // the list begins with the latest one
		texts := readHistory(one.Path)
		if one.ID == last {
			own = texts
			continue
		}
		all = append(all, texts...)
	}
	return append(all, own...)
}

// readHistory returns what the user wrote in a session. Unreadable sessions are left out.
func readHistory(path string) (texts []string) {
	if info, err := os.Stat(path); err != nil || info.Size() > maxHistoryFile {
		return nil
	}
	_, loaded, err := session.Load(path)
	if err != nil {
		return nil
	}
	for _, m := range loaded.Messages {
		if m.Role != mcp.RoleUser || len(m.Content) == 0 {
			continue
		}
		if text := strings.TrimSpace(m.Content[0].Text); text != "" && len(text) <= maxHistoryText {
			texts = append(texts, text)
		}
	}
	return texts
}
