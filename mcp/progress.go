package mcp

import "encoding/json"

// ProgressParams reports the progress of a request (basic/patterns/progress). Progress increases
// with each report.
type ProgressParams struct {
	Meta          Meta            `json:"_meta,omitempty"`
	ProgressToken json.RawMessage `json:"progressToken"`
	Progress      float64         `json:"progress"`
	Total         float64         `json:"total,omitzero"` // 0 means unknown
	Message       string          `json:"message,omitzero"`
}
