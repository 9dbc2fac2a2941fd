package mcp

import "encoding/json"

// Modes of elicitation. An absent mode means a form.
const (
	ElicitForm = "form"
	ElicitURL  = "url"
)

// ElicitParams asks the user to fill in a form or to visit a URL (client/elicitation).
type ElicitParams struct {
	Meta            Meta            `json:"_meta,omitempty"` // up to 2025-11-25; later schemas do not name it
	Mode            string          `json:"mode,omitzero"`
	Message         string          `json:"message"`
	RequestedSchema json.RawMessage `json:"requestedSchema,omitzero"` // form: a flat object of primitives
	URL             string          `json:"url,omitzero"`
	// ElicitationID exists in 2025-11-25 only. The server sets it.
	ElicitationID string `json:"elicitationId,omitzero"`
}

// ElicitAction is the user's reaction to a question.
type ElicitAction string

const (
	ElicitAccept  ElicitAction = "accept"
	ElicitDecline ElicitAction = "decline" // the user refused
	ElicitCancel  ElicitAction = "cancel"  // the user dismissed the question
)

// ElicitResult is the user's answer. Content is the filled-in form, an object; it is present only
// if the action is accept.
type ElicitResult struct {
	Meta    Meta            `json:"_meta,omitempty"` // up to 2025-11-25; later schemas do not name it
	Action  ElicitAction    `json:"action"`
	Content json.RawMessage `json:"content,omitzero"`
}
