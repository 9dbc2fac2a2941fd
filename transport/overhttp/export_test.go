package overhttp

import "time"

// SetUnread sets how long a client may leave unread what it is sent, until restore is called.
func SetUnread(d time.Duration) (restore func()) {
	before := unreadTimeout
	unreadTimeout = d
	return func() { unreadTimeout = before }
}
