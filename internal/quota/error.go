package quota

import (
	"fmt"
	"strconv"
)

// LimitError is the error for something that would exceed a limit. Its text is for the client.
type LimitError struct {
	// PerClient tells the limit of one client from the limit of the process.
	PerClient bool
	// text names the limit and the remedy.
	text string
}

func (e *LimitError) Error() string { return e.text }

func streamLimit(most int, perClient bool) *LimitError {
	if perClient {
		return &LimitError{true, fmt.Sprintf("this client has %d open streams, which is the limit (clientStreams): close one, and try again", most)}
	}
	return &LimitError{false, fmt.Sprintf("%d streams are open, which is the limit of this server (streams): try again later", most)}
}

func sessionLimit(most int, perClient bool) *LimitError {
	if perClient {
		return &LimitError{true, fmt.Sprintf("this client has %d sessions, which is the limit (clientSessions): end one, and try again", most)}
	}
	return &LimitError{false, fmt.Sprintf("%d sessions are open, which is the limit of this server (sessions): try again later", most)}
}

func byteLimit(most int64, perClient bool) *LimitError {
	if perClient {
		return &LimitError{true, fmt.Sprintf("messages of this client that wait would exceed %s, which is the limit (clientBytes): "+
			"read the answers that wait, and call again", formatBytes(most))}
	}
	return &LimitError{false, fmt.Sprintf("messages that wait for clients would exceed %s, which is the limit of this server (bytes): try again later", formatBytes(most))}
}

// formatBytes returns a number of bytes in the largest binary unit that needs no fraction.
func formatBytes(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB"}
	i := 0
	for ; n >= 1024 && n%1024 == 0 && i < len(units)-1; i++ {
		n /= 1024
	}
	return strconv.FormatInt(n, 10) + " " + units[i]
}
