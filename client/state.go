package client

import (
	"fmt"
	"time"
)

// Status is the status of a client's connection.
type Status uint8

const (
	Connecting Status = iota // dialing, for the first time or again
	Ready                    // calls are sent
	Lost                     // waiting for the next attempt to reconnect: calls wait too
	Failed                   // no attempts are left: calls fail until Reconnect
	Closed                   // by Close
)

func (s Status) String() string {
	return [...]string{"connecting", "ready", "lost", "failed", "closed"}[s]
}

// State describes a client's connection.
type State struct {
	Status Status
	// Err is the cause of Lost and Failed; nil otherwise.
	Err error
	// Attempt counts the attempts to reconnect since the connection was last stable. On Connecting
	// and Ready it is the number of this attempt, 0 for the first dial; on Lost it is the number of
	// the next one.
	Attempt int
	// Next is when the next attempt begins, on Lost; zero otherwise.
	Next time.Time
}

// String describes the state in a few words for a log or a status line.
func (s State) String() string {
	switch {
	case s.Status == Lost:
		return fmt.Sprintf("lost (%v), attempt %d in %v", s.Err, s.Attempt, time.Until(s.Next).Round(time.Millisecond))
	case s.Err != nil:
		return fmt.Sprintf("%v (%v)", s.Status, s.Err)
	}
	return s.Status.String()
}

// State returns the current state of the connection.
func (c *Client) State() State { return c.conn.currentState() }

func (c *connection) currentState() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// setState sets the state. The caller holds c.mu, and calls reportStates after it has released it.
func (c *connection) setState(s State) {
	c.state = s
	c.unreported = append(c.unreported, s)
	close(c.changed)
	c.changed = make(chan struct{})
}

// enterState sets and reports the state, unless the client is closed.
func (c *connection) enterState(s State) {
	c.mu.Lock()
	if c.state.Status != Closed {
		c.setState(s)
	}
	c.mu.Unlock()
	c.reportStates()
}

// reportStates passes new states to OnState. One goroutine at a time reports, so states arrive in
// order, and it holds no lock while OnState runs.
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
	c.callbacks.Add(1)
	defer c.callbacks.Add(-1)
	c.onState(s)
}
