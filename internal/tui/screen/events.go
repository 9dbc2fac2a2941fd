package screen

import (
	"time"

	"github.com/dowel-mcp/dowel/internal/tui/form"
	"github.com/dowel-mcp/dowel/internal/tui/statusline"
	"github.com/dowel-mcp/dowel/internal/tui/toolcard"
	"github.com/dowel-mcp/dowel/internal/tui/transcript"
)

// The messages to the screen. Their texts may be foreign unless their comments say otherwise.
type (
	// Taken reports that the host begins with the oldest submitted message.
	Taken struct{ Text string }
	// Said is a piece of the model's answer.
	Said struct{ Piece string }
	// Thought is a piece of the model's reasoning.
	Thought struct{ Piece string }
	// Replied ends an answer.
	Replied struct{}
	// Noticed adds a notice.
	Noticed struct {
		Kind transcript.Kind
		Text string
	}
	// Printed adds styled output of a command.
	Printed struct{ Text string }
	// CallStarted adds a running call. ID identifies it in the other messages.
	CallStarted struct {
		ID   string
		Card toolcard.Card
	}
	// CallProgressed reports progress of a call.
	CallProgressed struct{ ID, Text string }
	// CallEnded ends a call, which may not have started.
	CallEnded struct {
		ID   string
		Card toolcard.Card // with the result
	}
	// Working reports what the program does; "" means nothing.
	Working struct{ Activity string }
	// ModelChosen names the model.
	ModelChosen struct{ Name string }
	// ServersChanged counts the servers.
	ServersChanged statusline.Servers
	// ThemeChosen sets the colours.
	ThemeChosen struct{ Theme Theme }
	// ContextUsed reports how much of the model's context is used, in tokens, and what the
	// conversation has cost, such as $0.12; "" means unknown.
	ContextUsed struct {
		Used, Window int
		Cost         string
	}
	// HistoryLoaded has the messages of earlier sessions, the oldest first.
	HistoryLoaded struct{ All []string }
	// Drafted puts a text into the input, unless the user has written something.
	Drafted struct{ Text string }
	// Ticked tells the time.
	Ticked struct{ Now time.Time }
	// PictureOpened shows an image of a result alone; 0 means the latest.
	PictureOpened struct{ Number int }
	// Asked puts a form to the user. Answer is called once, unless [Withdrawn] comes before.
	Asked struct {
		Form   *form.Form
		Answer func(word string)
	}
	// Withdrawn removes a form.
	Withdrawn struct{ Form *form.Form }
	// RunEnded ends a reply and the running calls, however the run ended.
	RunEnded struct{}
	// Batch is several messages in their order.
	Batch []any
	// CompleteAgain reports that there may be more completions than before.
	CompleteAgain struct{}
	// Closed ends the program.
	Closed struct{}
)

// show handles a message of the host.
func (m *Model) show(msg any) {
	switch msg := msg.(type) {
	case Taken:
		m.take(msg.Text)
	case Said:
		m.say(msg.Piece)
	case Thought:
		m.think(msg.Piece)
	case Replied:
		m.endReply()
	case Noticed:
		m.appendItem(&transcript.Notice{Kind: msg.Kind, Text: msg.Text})
	case Printed:
		m.print(msg.Text)
	case RunEnded:
		m.endRun()
	case Asked:
		m.ask(msg)
	case Withdrawn:
		m.withdraw(msg.Form)
	case CallStarted, CallProgressed:
		m.showCall(msg)
	case Framed:
		m.wire.addFrame(msg)
	case WireFailed:
		m.wire.trouble = msg.Text
	default:
		m.showStatus(msg)
	}
}

// showStatus handles a message that changes the last line.
func (m *Model) showStatus(msg any) {
	switch msg := msg.(type) {
	case Working:
		if msg.Activity != m.activity {
			m.activity, m.begun = msg.Activity, m.now
		}
		m.tick()
	case ModelChosen:
		m.status.Model = msg.Name
	case ThemeChosen:
		m.chosen = msg.Theme
		m.applyTheme()
	case ServersChanged:
		m.status.Servers = statusline.Servers(msg)
	case ContextUsed:
		m.status.Used, m.status.Window, m.status.Cost = msg.Used, msg.Window, msg.Cost
	case Drafted:
		if m.composer.IsEmpty() {
			m.composer.Replace(msg.Text)
		}
	case HistoryLoaded:
		m.composer.SetHistory(msg.All)
	case Ticked:
		m.now = msg.Now
		m.tick()
	}
}

// tick updates the times on the screen.
func (m *Model) tick() {
	m.status.Activity, m.status.Elapsed = m.activity, 0
	if m.activity != "" {
		m.status.Elapsed = m.now.Sub(m.begun).Truncate(time.Second)
	}
	for _, call := range m.calls {
		if elapsed := m.now.Sub(call.begun).Truncate(time.Second); elapsed != call.card.Elapsed {
			call.card.Elapsed = elapsed
			call.card.Touch()
		}
	}
}

// appendItem appends an item, and ends the open item before it.
func (m *Model) appendItem(item transcript.Item) {
	m.endReply()
	m.Transcript.Append(item)
}

// addTrouble adds a notice that something has not worked.
func (m *Model) addTrouble(text string) {
	m.appendItem(&transcript.Notice{Kind: transcript.Trouble, Text: text})
}

func (m *Model) take(text string) {
	if len(m.queue) > 0 {
		m.queue = m.queue[1:]
	}
	m.appendItem(&transcript.User{Text: text})
}

func (m *Model) say(piece string) {
	if m.reply == nil {
		m.endReply()
		m.reply = &transcript.Reply{}
		m.Transcript.Append(m.reply)
	}
	m.reply.Append(piece)
}

func (m *Model) think(piece string) {
	if m.thought == nil {
		m.endReply()
		m.thought = &transcript.Thought{}
		m.Transcript.Append(m.thought)
	}
	m.thought.Append(piece)
}

func (m *Model) print(text string) {
	if m.output == nil {
		m.endReply()
		m.output = &transcript.Output{}
		m.Transcript.Append(m.output)
	}
	m.output.Append(text)
}

// endReply ends the open reply, thought or output.
func (m *Model) endReply() {
	if m.thought != nil {
		m.thought.Finish()
	}
	m.reply, m.thought, m.output = nil, nil, nil
}

// endRun ends everything that was running. A call that still runs was stopped.
func (m *Model) endRun() {
	m.endReply()
	for id, call := range m.calls {
		call.card.State, call.card.Facts = toolcard.Refused, "stopped"
		call.card.Touch()
		delete(m.calls, id)
	}
	m.activity = ""
	m.tick()
}

func (m *Model) showCall(msg any) {
	switch msg := msg.(type) {
	case CallStarted:
		card := msg.Card
		m.calls[msg.ID] = &runningCall{&card, m.now}
		m.appendItem(&card)
	case CallProgressed:
		if call := m.calls[msg.ID]; call != nil {
			call.card.Progress = msg.Text
			call.card.Touch()
		}
	}
}

// endCall ends a call, and returns its card.
func (m *Model) endCall(ended CallEnded) *toolcard.Card {
	call := m.calls[ended.ID]
	if call == nil {
		card := ended.Card
		m.appendItem(&card)
		return &card
	}
	delete(m.calls, ended.ID)
	call.card.State, call.card.Facts, call.card.Result, call.card.Pictures = ended.Card.State, ended.Card.Facts, ended.Card.Result, ended.Card.Pictures
	call.card.Touch()
	return call.card
}

// ask shows a form. If the user is writing, the form gets the keys later: the user must not answer
// by accident.
func (m *Model) ask(a Asked) {
	a.Form.Start()
	m.asks = append(m.asks, a)
	if len(m.asks) == 1 {
		m.isAsideAsk = !m.composer.IsEmpty()
	}
}

func (m *Model) endAsk(word string) {
	first := m.asks[0]
	m.nextAsk()
	first.Answer(word)
}

func (m *Model) nextAsk() {
	m.asks = m.asks[1:]
	m.isAsideAsk = len(m.asks) > 0 && !m.composer.IsEmpty()
}

func (m *Model) withdraw(f *form.Form) {
	for i := range m.asks {
		if m.asks[i].Form == f {
			if i == 0 {
				m.nextAsk()
				return
			}
			m.asks = append(m.asks[:i], m.asks[i+1:]...)
			return
		}
	}
}
