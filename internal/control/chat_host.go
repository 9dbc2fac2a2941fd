package control

import "context"

// ChatHost makes agents for conversations in the running dowel. It is used by one goroutine at a
// time.
type ChatHost interface {
	// Models returns the models of the configuration.
	Models() ChatModels
	// Open makes an agent. ctx bounds the opening only.
	Open(ctx context.Context, o ChatOptions) (ChatAgent, error)
}

// ChatAgent is an agent with its conversation. It is used by one goroutine at a time.
type ChatAgent interface {
	// ID is the ID of the conversation, also before its file exists.
	ID() string
	// Mode says which tools run, as in [ChatOptions].
	Mode() string
	// Send stores a message of the user, and returns the turn that answers it. The turn calls show
	// when its progress has changed, and ends soon after its context.
	Send(text string) (turn func(ctx context.Context, show func(ChatProgress)) error, err error)
	Close()
}

// ChatProgress is the part of a turn that the conversation does not hold yet.
type ChatProgress struct {
	Draft  string `json:"draft"`           // of the reply that the model writes now
	Notice string `json:"notice,omitzero"` // the last remark of the agent in this turn
	// IsWaiting: the model has answered, and the turn waits for the end of a task. A message of the
	// user ends the wait, and the next turn waits again.
	IsWaiting bool `json:"isWaiting,omitzero"`
}

// ChatModels are the models that a user may choose for a conversation.
type ChatModels struct {
	Models []string `json:"models"`
	// Default is the model of a conversation for which none is chosen, or "".
	Default string `json:"default,omitzero"`
	// Problem says why no conversation can begin, or "".
	Problem string `json:"problem,omitzero"`
}

// ChatOptions describe a conversation that begins or continues.
type ChatOptions struct {
	// Session is the ID of the conversation to continue; "" begins a new one.
	Session string `json:"-"`
	Model   string `json:"model,omitzero"` // of the configuration; "" means the default, or the last one
	// Mode says which tools run: ask, read-only or none. "" means the mode that the conversation
	// has stored, or ask.
	Mode string `json:"mode,omitzero"`
	Text string `json:"text"` // of the user's first message
}

// ChatState is the state of a conversation with an agent in this process.
type ChatState struct {
	// IsWorking: the agent answers now. Otherwise it waits for a message.
	IsWorking bool `json:"isWorking,omitzero"`
	// IsWaiting is as in [ChatProgress].
	IsWaiting bool   `json:"isWaiting,omitzero"`
	Mode      string `json:"mode,omitzero"`
	// Problem says why the last turn has failed, or "".
	Problem string `json:"problem,omitzero"`
}
