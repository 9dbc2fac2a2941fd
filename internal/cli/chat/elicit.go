package chat

import (
	"context"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/elicit"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// elicit puts a server's question to the user: on the terminal, and with the answers of --answer.
func (c *conversation) elicit(ctx context.Context, r *client.ElicitRequest, given []toolargs.Argument) (*mcp.ElicitResult, error) {
	c.show.Hold(true)
	defer c.show.Hold(false)
	q := &elicit.Asker{Out: c.show.Side, Origin: c.originOf(ctx, r.Server), Answers: given, Warn: c.app.Warn}
	if c.term != nil {
		defer c.term.Hold()()
		q.In = term.NewLines(&answers{chat: c, ctx: ctx})
	}
	return q.Ask(ctx, r)
}

// originOf tells where a server comes from.
func (c *conversation) originOf(ctx context.Context, server string) string {
	ctx, cancel := context.WithTimeout(ctx, connect.StatusTimeout)
	defer cancel()
	servers, err := c.it.Servers(ctx)
	if err == nil {
		for _, s := range servers {
			if s.Name == server {
				return term.Line(s.Origin)
			}
		}
	}
	return "a server of this conversation"
}

// answers are the lines that answer one question, as a stream.
type answers struct {
	chat *conversation
	ctx  context.Context
	rest []byte
}

// Read implements [io.Reader]. It ends with Ctrl-D, and with an error where Ctrl-C stops what has asked.
func (a *answers) Read(p []byte) (int, error) {
	if len(a.rest) == 0 {
		text, err := a.chat.reply(a.ctx, term.Question{Answer: true})
		if err != nil {
			return 0, err
		}
		a.rest = append([]byte(text), '\n')
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}
