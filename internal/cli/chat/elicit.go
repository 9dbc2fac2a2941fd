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

// answerElicitation answers a server's question from given, the answers of --answer, and asks the
// user for the rest if the conversation has a terminal.
func (c *conversation) answerElicitation(ctx context.Context, r *client.ElicitRequest, given []toolargs.Argument) (*mcp.ElicitResult, error) {
	c.view.Hold(true)
	defer c.view.Hold(false)
	if c.screen != nil {
		return c.screen.answerElicitation(ctx, c, r, given)
	}
	q := &elicit.Asker{Out: c.side, Origin: c.lookupOrigin(ctx, r.Server), Answers: given, Warn: c.app.Warn}
	if c.term != nil {
		defer c.term.Hold()()
		q.In = term.NewLines(&answerReader{chat: c, ctx: ctx})
	}
	return q.Ask(ctx, r)
}

// lookupOrigin returns the origin of a server, such as its command or URL.
func (c *conversation) lookupOrigin(ctx context.Context, server string) string {
	ctx, cancel := context.WithTimeout(ctx, connect.StatusTimeout)
	defer cancel()
	servers, err := c.runtime.Servers(ctx)
	if err == nil {
		for _, s := range servers {
			if s.Name == server {
				return term.Line(s.Origin)
			}
		}
	}
	return "a server of this conversation"
}

// answerReader reads the user's answers to one question as a stream of lines.
type answerReader struct {
	chat   *conversation
	ctx    context.Context
	unread []byte
}

// Read implements [io.Reader]. Ctrl-D is [io.EOF]. Ctrl-C returns the cause that stopped the work.
func (a *answerReader) Read(p []byte) (int, error) {
	if len(a.unread) == 0 {
		text, err := a.chat.readAnswer(a.ctx, term.Question{Answer: true})
		if err != nil {
			return 0, err
		}
		a.unread = append([]byte(text), '\n')
	}
	n := copy(p, a.unread)
	a.unread = a.unread[n:]
	return n, nil
}
