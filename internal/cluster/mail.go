package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/nats-io/nats.go"
)

// errorField carries the error of a handler.
const errorField = "Dowel-Error"

// probeField marks a message that only asks whether its instance is there.
const probeField = "Dowel-Probe"

// Receive implements [replica.Network].
func (c *Cluster) Receive(instance string, h replica.Handler) (stop func(), err error) {
	take := func(m *nats.Msg) {
		if m.Header.Get(probeField) != "" {
			_ = m.Respond(nil) // the sender asks again
			return
		}
		// A goroutine of its own, because NATS passes the messages of a subscription one by one.
		if c.startWork() {
			go c.answer(m, h)
		}
	}
	own, err := c.conn.Subscribe(c.subject("to."+instance), take)
	if err != nil {
		return nil, storeError(err)
	}
	all, err := c.conn.Subscribe(c.subject("all"), take)
	if err != nil {
		_ = own.Unsubscribe()
		return nil, storeError(err)
	}
	stop = func() {
		_, _ = own.Unsubscribe(), all.Unsubscribe()
		_ = c.conn.FlushTimeout(storeTimeout) // from then on Send fails with ErrGone
	}
	_ = c.conn.FlushTimeout(storeTimeout) // without a connection it receives from the next one on
	return stop, nil
}

// startWork counts a goroutine that Close waits for. It reports false if the cluster is closed.
func (c *Cluster) startWork() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.running.Add(1)
	return true
}

// answer calls the handler with a message and sends the answer, if the sender waits for one.
func (c *Cluster) answer(m *nats.Msg, h replica.Handler) {
	defer c.running.Done()
	data, err := h(c.ctx, m.Data)
	if m.Reply == "" {
		return
	}
	reply := nats.NewMsg(m.Reply)
	if reply.Data = data; int64(len(data)) > c.conn.MaxPayload()-headRoom {
		reply.Data, err = nil, c.tooLarge(len(data))
	}
	if err != nil {
		reply.Header.Set(errorField, err.Error())
	}
	if err := m.RespondMsg(reply); err != nil && c.ctx.Err() == nil {
		c.opts.Logger.Warn("a message of another replica could not be answered", "cluster", c.name, "err", err)
	}
}

// sendTimeout bounds Send if its context has no earlier end.
const sendTimeout = time.Second

// Send implements [replica.Network].
func (c *Cluster) Send(ctx context.Context, instance string, message []byte) ([]byte, error) {
	if err := c.checkConnected(); err != nil {
		return nil, err
	}
	if limit := c.conn.MaxPayload(); int64(len(message)) > limit-headRoom {
		return nil, c.tooLarge(len(message))
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	m, err := c.conn.RequestWithContext(ctx, c.subject("to."+instance), message)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, replica.ErrGone
	case err != nil && c.isGone(instance):
		return nil, replica.ErrGone
	case err != nil:
		return nil, storeError(err)
	case m.Header.Get(errorField) != "":
		return nil, errors.New(m.Header.Get(errorField))
	}
	return m.Data, nil
}

// tooLarge returns the error for a message that does not fit.
func (c *Cluster) tooLarge(size int) error {
	return fmt.Errorf("%w: a message of %d bytes does not fit: set max_payload of the NATS server, which is %d", replica.ErrTooLarge, size, c.conn.MaxPayload())
}

// isGone reports whether an instance that has not answered is gone. Its process may have ended with
// the message in its hands.
func (c *Cluster) isGone(instance string) bool {
	probe := nats.NewMsg(c.subject("to." + instance))
	probe.Header.Set(probeField, "1")
	_, err := c.conn.RequestMsg(probe, sendTimeout/4)
	return errors.Is(err, nats.ErrNoResponders)
}

// SendAll implements [replica.Network].
func (c *Cluster) SendAll(message []byte) error {
	if err := c.checkConnected(); err != nil {
		return err
	}
	return storeError(c.conn.Publish(c.subject("all"), message))
}
