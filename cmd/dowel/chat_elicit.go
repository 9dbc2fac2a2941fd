package main

import (
	"context"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// elicit puts a server's question to the user: on the terminal, and with the answers of --answer.
func (c *chat) elicit(ctx context.Context, r *client.ElicitRequest, given []argument) (*mcp.ElicitResult, error) {
	c.show.hold(true)
	defer c.show.hold(false)
	q := &questions{out: c.show.side, origin: c.originOf(ctx, r.Server), answers: given, warn: c.app.warn}
	if c.term != nil {
		defer c.term.hold()()
		q.in = newLines(&answers{chat: c, ctx: ctx})
	}
	return q.ask(ctx, r)
}

// originOf tells where a server comes from.
func (c *chat) originOf(ctx context.Context, server string) string {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	servers, err := c.it.servers(ctx)
	if err == nil {
		for _, s := range servers {
			if s.Name == server {
				return line(s.Origin)
			}
		}
	}
	return "a server of this conversation"
}

// answers are the lines that answer one question, as a stream.
type answers struct {
	chat *chat
	ctx  context.Context
	rest []byte
}

// Read implements [io.Reader]. It ends with Ctrl-D, and with an error where Ctrl-C stops what has asked.
func (a *answers) Read(p []byte) (int, error) {
	if len(a.rest) == 0 {
		text, err := a.chat.reply(a.ctx, ask{answer: true})
		if err != nil {
			return 0, err
		}
		a.rest = append([]byte(text), '\n')
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}
