package client

import (
	"fmt"
	"time"
)

// Status says how a client's connection is.
type Status uint8

const (
	Connecting Status = iota // dialing, for the first time or again
	Ready                    // calls go out
	Lost                     // between two attempts to restore the connection: calls wait
	Failed                   // given up: calls fail, until Reconnect
	Closed                   // by Close
)

func (s Status) String() string {
	return [...]string{"connecting", "ready", "lost", "failed", "closed"}[s]
}

// State is the state of a client's connection, since when, and why.
type State struct {
	Status Status
	Since  time.Time
	// Err says why, on Lost and Failed.
	Err error
	// Attempt counts the attempts to restore the connection since it was last stable: on Connecting and Ready the one
	// that this is (0 is the first dial), on Lost the next one.
	Attempt int
	// Next is when the next attempt begins, on Lost.
	Next time.Time
}

// String describes the state in a few words.
func (s State) String() string {
	switch {
	case s.Status == Lost:
		return fmt.Sprintf("lost (%v), attempt %d in %v", s.Err, s.Attempt, time.Until(s.Next).Round(time.Millisecond))
	case s.Err != nil:
		return fmt.Sprintf("%v (%v)", s.Status, s.Err)
	}
	return s.Status.String()
}

// State returns the present state of the connection.
func (c *Client) State() State { return c.conn.currentState() }

func (c *connection) currentState() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// setState enters a state; c.mu is held. Call announce once it is released.
func (c *connection) setState(s State) {
	s.Since = time.Now()
	c.state = s
	c.unreported = append(c.unreported, s)
	close(c.changed)
	c.changed = make(chan struct{})
}

// enterState sets the state and announces it, unless the client is closed.
func (c *connection) enterState(s State) {
	c.mu.Lock()
	if c.state.Status != Closed {
		c.setState(s)
	}
	c.mu.Unlock()
	c.reportStates()
}

// reportStates tells of states that were not told yet: no lock is held while it tells, and only one goroutine does.
func (c *connection) reportStates() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reporting {
		return
	}
	c.reporting = true
	defer func() { c.reporting = false }()
	for len(c.unreported) > 0 {
		s := c.unreported[0]
		c.unreported = c.unreported[1:]
		c.reportState(s)
	}
}

func (c *connection) reportState(s State) {
	if c.onState == nil {
		return
	}
	c.mu.Unlock()
	defer c.mu.Lock()
	c.onState(s)
}
