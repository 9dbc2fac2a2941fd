package mcp

import "encoding/json"

// Elicitation modes. An absent mode is form.
const (
	ElicitForm = "form"
	ElicitURL  = "url"
)

// ElicitParams asks the user: to fill a form, or to visit a URL (client/elicitation).
type ElicitParams struct {
	Meta            Meta            `json:"_meta,omitempty"` // up to 2025-11-25; later schemas do not name it
	Mode            string          `json:"mode,omitzero"`
	Message         string          `json:"message"`
	RequestedSchema json.RawMessage `json:"requestedSchema,omitzero"` // form: a flat object of primitives
	URL             string          `json:"url,omitzero"`
	// ElicitationID belongs to 2025-11-25; the edge writes it there.
	ElicitationID string `json:"elicitationId,omitzero"`
}

// ElicitAction is what the user did with a question.
type ElicitAction string

const (
	ElicitAccept  ElicitAction = "accept"
	ElicitDecline ElicitAction = "decline" // said no
	ElicitCancel  ElicitAction = "cancel"  // went away without a choice
)

// ElicitResult is the user's answer. Content is the filled form: an object, on accept only.
type ElicitResult struct {
	Meta    Meta            `json:"_meta,omitempty"` // up to 2025-11-25; later schemas do not name it
	Action  ElicitAction    `json:"action"`
	Content json.RawMessage `json:"content,omitzero"`
}

// ElicitationCompletedParams tell a client of 2025-11-25 that what the user has been asked to do at a URL is done.
type ElicitationCompletedParams struct {
	ElicitationID string `json:"elicitationId"`
}
