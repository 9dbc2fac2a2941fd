package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/session"
)

// Chats are the saved conversations of dowel chat and dowel run, and the programs that continue
// them now. It is safe for concurrent use.
type Chats struct {
	// Host makes agents in this process; nil means that none can be made. Set it before
	// the first use.
	Host ChatHost

	folder string // of the files
	hosting

	mu      sync.Mutex
	agents  []*AgentProgram
	changed chan struct{} // closed at the next change of agents, and then replaced
}

// NewChats returns the conversations in a folder, which need not exist.
func NewChats(folder string) *Chats {
	return &Chats{folder: folder, changed: make(chan struct{})}
}

// AgentProgram is a process that continues a conversation now.
type AgentProgram struct {
	Session string `json:"session"` // the ID
	Program string `json:"program"` // such as dowel chat
	PID     int    `json:"pid"`

	isHosted bool // an agent of this process
}

// ChatSummary is a conversation in a list.
type ChatSummary struct {
	session.Header
	Changed time.Time `json:"changed"`
	Words   string    `json:"words"` // the user's first words
	// Live is the program that continues it now, or nil.
	Live *AgentProgram `json:"live,omitempty"`
	// Here is the state of its agent if that runs in this process.
	Here *ChatState `json:"here,omitempty"`
}

// ChatList is the answer to a request for all conversations, the last used first.
type ChatList struct {
	Chats []ChatSummary `json:"chats"`
	// IsCut: there are older ones.
	IsCut bool `json:"isCut,omitzero"`
}

// Chat is a conversation with its steps.
type Chat struct {
	*session.Trace
	Live *AgentProgram `json:"live,omitempty"`
	Here *ChatState    `json:"here,omitempty"`
	// Seen identifies what this answer has, for the next request.
	Seen string `json:"seen"`
}

// Limits of answers.
const (
	maxChats       = 500
	maxChatText    = 16 << 10 // bytes of a text; the entry alone has all of it
	maxChatWords   = 300
	chatWait       = 25 * time.Second // for a change
	chatPoll       = 200 * time.Millisecond
	maxChatEntries = 2000 // the newest
)

// List returns the conversations with all words of a filter.
func (c *Chats) List(filter string) (ChatList, error) {
	l := ChatList{Chats: []ChatSummary{}}
	all, err := session.List(c.folder)
	words := strings.Fields(strings.ToLower(filter))
	for _, s := range all {
		text := strings.ToLower(strings.Join([]string{s.ID, s.Words, s.Model, s.Folder}, " "))
		if slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
			continue
		}
		if len(l.Chats) == maxChats {
			l.IsCut = true
			break
		}
		here, _ := c.hostedState(s.ID)
		l.Chats = append(l.Chats, ChatSummary{s.Header, s.Changed, shorten(s.Words, maxChatWords), c.findAgent(s.ID), here})
	}
	return l, err
}

// findAgent returns the program that continues a conversation, or nil.
func (c *Chats) findAgent(id string) *AgentProgram {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.agents, func(a *AgentProgram) bool { return a.Session == id }); i >= 0 {
		return c.agents[i]
	}
	return nil
}

// follow returns a channel that is closed when an agent comes or goes.
func (c *Chats) follow() <-chan struct{} {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Attach adds a program until release is called.
func (c *Chats) Attach(a AgentProgram) (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := &a
	c.agents = append(c.agents, one)
	c.announceLocked()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.agents = slices.DeleteFunc(c.agents, func(other *AgentProgram) bool { return other == one })
		c.announceLocked()
	}
}

// announceLocked wakes everybody who follows the agents. c.mu is held.
func (c *Chats) announceLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// path returns the file of a conversation.
func (c *Chats) path(id string) (string, error) {
	s, err := session.Find(c.folder, id)
	return s.Path, err
}

// Read returns a conversation, with texts cut. If nothing has changed since an answer with Seen as
// seen, it waits for a change, at most until ctx ends.
func (c *Chats) Read(ctx context.Context, id, seen string) (Chat, error) {
	path, err := c.path(id)
	if err != nil {
		return Chat{}, err
	}
	c.awaitChange(ctx, id, path, seen)
	here, version := c.hostedState(id) // before the file, so that a later state is seen, too
	trace, err := session.ReadTrace(path)
	if err != nil {
		return Chat{}, err
	}
	trace.Cut(maxChatEntries, maxChatText)
	if here != nil && here.IsWorking {
		markWaiting(trace)
	}
	return Chat{trace, c.findAgent(trace.ID), here, formatSeen(trace.Size, version)}, nil
}

// markWaiting gives the calls of the last reply that have not started the status waiting: they wait
// for an approval, or for the calls before.
func markWaiting(t *session.Trace) {
	if len(t.Entries) == 0 {
		return
	}
	for i, c := range t.Entries[len(t.Entries)-1].Calls {
		if c.Status == "lost" {
			t.Entries[len(t.Entries)-1].Calls[i].Status = "waiting"
		}
	}
}

// formatSeen returns the form of [Chat].Seen.
func formatSeen(size int64, version int) string { return fmt.Sprintf("%d.%d", size, version) }

// awaitChange waits until a file has another size, or an agent comes, goes or has another state. ""
// as seen does not wait.
func (c *Chats) awaitChange(ctx context.Context, id, path, seen string) {
	if seen == "" {
		return
	}
	changed, poll := c.follow(), time.NewTicker(chatPoll)
	defer poll.Stop()
	for {
		_, version := c.hostedState(id)
		if info, err := os.Stat(path); err != nil || formatSeen(info.Size(), version) != seen {
			return
		}
		select {
		case <-poll.C:
		case <-changed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// addChats adds the paths of conversations. protect guards them.
func (d Running) addChats(mux *http.ServeMux, protect func(http.HandlerFunc) http.HandlerFunc) {
	mux.HandleFunc("GET /v1/chats", protect(func(w http.ResponseWriter, r *http.Request) {
		list, err := d.Chats.List(r.URL.Query().Get("q"))
		writeResult(w, list, err)
	}))
	mux.HandleFunc("GET /v1/chats/{id}", protect(func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithTimeout(r.Context(), chatWait)
		defer stop()
		defer context.AfterFunc(d.Life, stop)()
		chat, err := d.Chats.Read(ctx, r.PathValue("id"), r.URL.Query().Get("seen"))
		writeResult(w, chat, err)
	}))
	mux.HandleFunc("GET /v1/chats/{id}/entries/{n}", protect(d.serveChatEntry))
	d.addHostedChats(mux, protect)
	mux.HandleFunc("GET /v1/chats/{id}/prompts/{n}", protect(func(w http.ResponseWriter, r *http.Request) {
		path, err := d.Chats.path(r.PathValue("id"))
		n, _ := strconv.Atoi(r.PathValue("n")) // 0 is in no file
		var prompt *session.Prompt
		if err == nil {
			prompt, err = session.ReadPrompt(path, n)
		}
		writeResult(w, prompt, err)
	}))
}

// serveChatEntry answers with a part of a conversation with its whole texts.
func (d Running) serveChatEntry(w http.ResponseWriter, r *http.Request) {
	path, err := d.Chats.path(r.PathValue("id"))
	var trace *session.Trace
	if err == nil {
		trace, err = session.ReadTrace(path)
	}
	n, wrong := strconv.Atoi(r.PathValue("n"))
	if err == nil && (wrong != nil || n < 0 || n >= len(trace.Entries)) {
		err = errors.New("the conversation has no such part")
	}
	if err != nil {
		writeOutcome(w, err)
		return
	}
	writeJSON(w, trace.Entries[n])
}

// serveAgent attaches an agent to its conversation as long as the request lasts.
func (d Running) serveAgent(w http.ResponseWriter, r *http.Request) {
	var a AgentProgram
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
		writeOutcome(w, err)
		return
	}
	d.Chats.yieldTo(a.Session)
	defer d.Chats.Attach(a)()
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // an agent that is gone ends the request
	select {
	case <-r.Context().Done():
	case <-d.Life.Done():
	}
}

// CheckIdle returns an error if an agent of the running dowel works in a conversation now. It
// returns nil if no dowel runs.
func (c *Client) CheckIdle(ctx context.Context, id string) error {
	var list ChatList
	if err := c.call(ctx, http.MethodGet, "/v1/chats?q="+url.QueryEscape(id), &list); err != nil {
		return nil // no dowel runs, or an older one without conversations
	}
	for _, chat := range list.Chats {
		if chat.ID == id && chat.Here != nil && chat.Here.IsWorking {
			return errWorksHere
		}
	}
	return nil
}

var errWorksHere = errors.New("the model works in this conversation in the console now: wait for its answer, or stop it there")

// AttachAgent tells the running dowel which conversation this process continues, until ctx ends or
// the running dowel does.
func (c *Client) AttachAgent(ctx context.Context, a AgentProgram) error {
	resp, err := c.postJSON(ctx, "/v1/agents", a)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = resp.Body.Read(make([]byte, 1)) // there is no byte
	return err
}
