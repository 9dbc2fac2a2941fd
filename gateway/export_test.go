package gateway

import "time"

// SetAuthorizationInterval changes the time between two checks of the token of a long request. It
// applies to handlers that are made before restore is called.
func SetAuthorizationInterval(d time.Duration) (restore func()) {
	before := authorizationInterval
	authorizationInterval = d
	return func() { authorizationInterval = before }
}
