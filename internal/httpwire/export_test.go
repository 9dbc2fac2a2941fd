package httpwire

import "time"

// SetUnreadTimeout sets how long a client may leave unread data in the connection, until restore is
// called.
func SetUnreadTimeout(d time.Duration) (restore func()) {
	before := unreadTimeout
	unreadTimeout = d
	return func() { unreadTimeout = before }
}
