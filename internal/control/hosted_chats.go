package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/session"
)

// HostProgram is the program of conversations in the running dowel.
const HostProgram = "dowel console"

// Limits of conversations in this process.
const (
	maxHosted    = 20
	maxChatInput = 256 << 10 // bytes of a message
	hostedIdle   = 30 * time.Minute
)

var (
	errNoHost   = errors.New("this dowel begins no conversations, since another command than dowel up started it: run dowel chat, or dowel up")
	errTurn     = errors.New("the model still works: wait for its answer, or stop it")
	errMessage  = errors.New("the user has written again")
	errIdle     = errors.New("the model does not work in this conversation now")
	errNoText   = errors.New("the message is empty")
	errLongText = fmt.Errorf("the message is longer than %d KiB: name a file instead", maxChatInput>>10)
	errChatStop = errors.New("stopped by the user")
	errEnding   = errors.New("dowel ends")
)

// hostedChat is a conversation whose agent runs in this process. Its fields are guarded by
// Chats.mu.
type hostedChat struct {
	agent   ChatAgent
	state   ChatState
	shown   ChatProgress            // of the turn
	stop    context.CancelCauseFunc // ends the turn; nil between turns
	ended   chan struct{}           // closed at the end of the turn
	idle    *time.Timer             // closes the agent; nil during a turn
	since   time.Time               // of idle
	version int                     // counts the changes of state
	release func()                  // removes it from the programs that continue conversations
}

// hosting is the part of [Chats] with agents in this process.
type hosting struct {
	opening sync.Mutex // held while an agent is opened

	turns  sync.WaitGroup
	hosted map[string]*hostedChat // by ID; guarded by Chats.mu
	last   int                    // the last version; guarded by Chats.mu
	ended  bool                   // guarded by Chats.mu
}

// Models returns the models for a conversation in this process.
func (c *Chats) Models() ChatModels {
	if c.Host == nil {
		return ChatModels{Models: []string{}, Problem: errNoHost.Error()}
	}
	c.opening.Lock()
	defer c.opening.Unlock()
	return c.Host.Models()
}

// Start begins a conversation with an agent in this process, and returns its ID.
func (c *Chats) Start(ctx context.Context, o ChatOptions) (id string, err error) {
	o.Session = ""
	return c.begin(ctx, o)
}

// Continue sends a message in a conversation with an agent in this process. A conversation that no
// program continues gets an agent.
func (c *Chats) Continue(ctx context.Context, id, text string) error {
	_, err := c.begin(ctx, ChatOptions{Session: id, Text: text})
	return err
}

func (c *Chats) begin(ctx context.Context, o ChatOptions) (id string, err error) {
	switch {
	case c.Host == nil:
		return "", errNoHost
	case strings.TrimSpace(o.Text) == "":
		return "", errNoText
	case len(o.Text) > maxChatInput:
		return "", errLongText
	}
	c.opening.Lock()
	defer c.opening.Unlock()
	if o.Session != "" {
		found, err := session.Find(c.folder, o.Session)
		if err != nil {
			return "", err
		}
		o.Session = found.ID
	}
	chat, err := c.openHosted(ctx, o)
	if err != nil {
		return "", err
	}
	turn, err := chat.agent.Send(o.Text)
	if err != nil {
		c.closeHosted(chat)
		return "", err
	}
	c.startTurn(chat, turn)
	return chat.agent.ID(), nil
}

// openHosted returns the idle agent of a conversation, or a new one. c.opening is held.
func (c *Chats) openHosted(ctx context.Context, o ChatOptions) (*hostedChat, error) {
	c.endWait(o.Session)
	chat, err := c.findIdle(o.Session)
	if chat != nil || err != nil {
		return chat, err
	}
	if err := c.makeRoom(); err != nil {
		return nil, err
	}
	agent, err := c.Host.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	chat = &hostedChat{agent: agent, state: ChatState{Mode: agent.Mode()}}
	chat.release = c.Attach(AgentProgram{Session: agent.ID(), Program: HostProgram, PID: os.Getpid(), isHosted: true})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hosted == nil {
		c.hosted = map[string]*hostedChat{}
	}
	c.hosted[agent.ID()] = chat
	return chat, nil
}

// endWait ends the turn of a conversation if it only waits for a task.
func (c *Chats) endWait(id string) {
	c.mu.Lock()
	chat := c.hosted[id]
	if chat == nil || chat.stop == nil || !chat.shown.IsWaiting {
		c.mu.Unlock()
		return
	}
	chat.stop(errMessage)
	ended := chat.ended
	c.mu.Unlock()
	<-ended
}

// findIdle returns the agent of a conversation between two turns, or nil if no program continues
// it.
func (c *Chats) findIdle(id string) (*hostedChat, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	chat, other := c.hosted[id], c.findOtherLocked(id)
	switch {
	case c.ended:
		return nil, errEnding
	case other != nil:
		return nil, fmt.Errorf("%s continues this conversation now (process %d): write there", other.Program, other.PID)
	case chat != nil && chat.stop != nil:
		return nil, errTurn
	case chat != nil:
		return chat, nil
	}
	return nil, nil
}

// findOtherLocked returns another program than an agent of this process that continues a
// conversation, or nil. c.mu is held.
func (c *Chats) findOtherLocked(id string) *AgentProgram {
	i := slices.IndexFunc(c.agents, func(a *AgentProgram) bool { return a.Session == id && !a.isHosted })
	if i < 0 {
		return nil
	}
	return c.agents[i]
}

// makeRoom closes the agent that has waited longest if there are too many.
func (c *Chats) makeRoom() error {
	c.mu.Lock()
	var oldest *hostedChat
	full := len(c.hosted) >= maxHosted
	for _, chat := range c.hosted {
		if chat.stop == nil && (oldest == nil || chat.since.Before(oldest.since)) {
			oldest = chat
		}
	}
	c.mu.Unlock()
	switch {
	case !full:
		return nil
	case oldest == nil:
		return fmt.Errorf("the model works in %d conversations: stop one of them first", maxHosted)
	}
	c.closeHosted(oldest)
	return nil
}

// startTurn runs a turn on another goroutine.
func (c *Chats) startTurn(chat *hostedChat, turn func(context.Context, func(ChatProgress)) error) {
	ctx, stop := context.WithCancelCause(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	if chat.idle != nil {
		chat.idle.Stop()
		chat.idle = nil
	}
	chat.stop, chat.ended, chat.state.IsWorking, chat.state.Problem = stop, make(chan struct{}), true, ""
	c.changeLocked(chat)
	c.turns.Go(func() {
		defer stop(nil)
		err := turn(ctx, func(p ChatProgress) { c.setProgress(chat, p) })
		c.endTurn(ctx, chat, err)
	})
}

// changeLocked tells the readers that the state of a conversation has changed. c.mu is held.
func (c *Chats) changeLocked(chat *hostedChat) {
	c.last++
	chat.version = c.last
	c.announceLocked()
}

// setProgress keeps the progress of a turn for readers of its draft.
func (c *Chats) setProgress(chat *hostedChat, p ChatProgress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if chat.shown.IsWaiting != p.IsWaiting {
		c.changeLocked(chat)
	}
	chat.shown = p
}

// endTurn records the outcome of a turn. An agent whose conversation another program continues is
// closed.
func (c *Chats) endTurn(ctx context.Context, chat *hostedChat, err error) {
	cause := context.Cause(ctx)
	c.mu.Lock()
	chat.stop, chat.state.IsWorking, chat.shown = nil, false, ChatProgress{}
	close(chat.ended)
	if err != nil && cause == nil {
		chat.state.Problem = secretmask.Text(err.Error())
	}
	chat.since = time.Now()
	chat.idle = time.AfterFunc(hostedIdle, func() { c.closeIdle(chat) })
	c.changeLocked(chat)
	isTaken := c.findOtherLocked(chat.agent.ID()) != nil
	c.mu.Unlock()
	if isTaken || errors.Is(err, session.ErrElsewhere) {
		c.closeIdle(chat)
	}
}

// closeIdle closes an agent unless a turn runs.
func (c *Chats) closeIdle(chat *hostedChat) {
	c.opening.Lock()
	defer c.opening.Unlock()
	c.mu.Lock()
	isWorking := chat.stop != nil
	c.mu.Unlock()
	if !isWorking {
		c.closeHosted(chat)
	}
}

// closeHosted closes an agent between two turns. It does nothing for a closed one. c.opening is
// held.
func (c *Chats) closeHosted(chat *hostedChat) {
	id := chat.agent.ID()
	c.mu.Lock()
	isOpen := c.hosted[id] == chat
	delete(c.hosted, id)
	if chat.idle != nil {
		chat.idle.Stop()
	}
	c.mu.Unlock()
	if isOpen {
		chat.agent.Close()
		chat.release()
	}
}

// Stop ends the turn of a conversation in this process. The conversation until then is kept.
func (c *Chats) Stop(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	chat := c.hosted[id]
	if chat == nil || chat.stop == nil {
		return errIdle
	}
	chat.stop(errChatStop)
	return nil
}

// yieldTo closes the agent of a conversation, which another program continues, between two turns.
func (c *Chats) yieldTo(id string) {
	c.mu.Lock()
	chat := c.hosted[id]
	c.mu.Unlock()
	if chat != nil {
		c.closeIdle(chat)
	}
}

// Close ends all agents of this process, and waits until their conversations are stored.
func (c *Chats) Close() {
	c.opening.Lock() // no turn begins from here on
	c.mu.Lock()
	c.ended = true
	for _, chat := range c.hosted {
		if chat.stop != nil {
			chat.stop(errEnding)
		}
	}
	c.mu.Unlock()
	c.opening.Unlock()
	c.turns.Wait()
	c.opening.Lock()
	defer c.opening.Unlock()
	for _, chat := range c.listHosted() {
		c.closeHosted(chat)
	}
}

func (c *Chats) listHosted() (all []*hostedChat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, chat := range c.hosted {
		all = append(all, chat)
	}
	return all
}

// hostedState returns the state of a conversation in this process, or nil, with its version.
func (c *Chats) hostedState(id string) (state *ChatState, version int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	chat := c.hosted[id]
	if chat == nil {
		return nil, 0
	}
	copied := chat.state
	copied.IsWaiting = chat.shown.IsWaiting
	return &copied, chat.version
}

// progressOf returns the progress of a turn. isWorking is false between turns.
func (c *Chats) progressOf(id string) (p ChatProgress, isWorking bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	chat := c.hosted[id]
	if chat == nil || chat.stop == nil {
		return ChatProgress{}, false
	}
	return chat.shown, true
}
