package mcp

import "encoding/json"

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

// LoggingLevels lists the levels, least severe first.
var LoggingLevels = [...]LoggingLevel{
	LevelDebug, LevelInfo, LevelNotice, LevelWarning, LevelError, LevelCritical, LevelAlert, LevelEmergency,
}

// Severity returns the rank of the level: 0 for debug to 7 for emergency, -1 for an unknown level.
func (l LoggingLevel) Severity() int {
	for i, known := range LoggingLevels {
		if l == known {
			return i
		}
	}
	return -1
}

// LoggingMessageParams is a log message (server/utilities/logging).
type LoggingMessageParams struct {
	Meta   Meta            `json:"_meta,omitempty"`
	Level  LoggingLevel    `json:"level"`
	Logger string          `json:"logger,omitzero"`
	Data   json.RawMessage `json:"data"`
}

// SetLevelParams sets the log level of a legacy session.
type SetLevelParams struct {
	Level LoggingLevel `json:"level"`
}

// LogMessage is the notification of a log message.
var LogMessage = NotificationMethod[LoggingMessageParams]{NotificationMessage}
