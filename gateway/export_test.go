package gateway

import "time"

// SetAuthorizationInterval changes the time between two checks of a long request's token, for the
// handlers that are made then. It returns a function that restores it.
func SetAuthorizationInterval(d time.Duration) (restore func()) {
	before := authorizationInterval
	authorizationInterval = d
	return func() { authorizationInterval = before }
}
