package client

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A call may wait for a connection for less long than the client would.
func TestConnectOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &connection{connectLimit: time.Minute, changed: make(chan struct{}), state: State{Status: Lost}}
		begin := time.Now()
		_, err := c.acquireLink(t.Context(), 2*time.Second)
		var timeout *TimeoutError
		if !errors.As(err, &timeout) || timeout.Kind != TimeoutConnect || time.Since(begin) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
	})
}
