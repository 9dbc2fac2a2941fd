package mcp

import (
	"encoding/json"
	"slices"
)

// LoggingLevel is a severity of RFC 5424.
type LoggingLevel string

const (
	LevelDebug     LoggingLevel = "debug"
	LevelInfo      LoggingLevel = "info"
	LevelNotice    LoggingLevel = "notice"
	LevelWarning   LoggingLevel = "warning"
	LevelError     LoggingLevel = "error"
	LevelCritical  LoggingLevel = "critical"
	LevelAlert     LoggingLevel = "alert"
	LevelEmergency LoggingLevel = "emergency"
)

// loggingLevels lists the levels, least severe first.
var loggingLevels = [...]LoggingLevel{
	LevelDebug, LevelInfo, LevelNotice, LevelWarning, LevelError, LevelCritical, LevelAlert, LevelEmergency,
}

// Severity returns the rank of the level: 0 for debug to 7 for emergency, -1 for an unknown level.
func (l LoggingLevel) Severity() int {
	return slices.Index(loggingLevels[:], l)
}

// LoggingMessageParams is a log message (server/utilities/logging).
type LoggingMessageParams struct {
	Meta   Meta            `json:"_meta,omitempty"`
	Level  LoggingLevel    `json:"level"`
	Logger string          `json:"logger,omitzero"`
	Data   json.RawMessage `json:"data"`
}
