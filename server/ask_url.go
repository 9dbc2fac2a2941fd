package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// How long one round waits for a visit that the user has consented to, and how often it looks. Clients may come back at
// once where nothing is asked, and give up after some rounds: what a round waits is what makes the rounds long enough for a
// human.
const (
	urlWait = 10 * time.Second
	urlPoll = time.Second
)

// errURLPending says that the user has consented to a visit that has not happened yet.
var errURLPending = errors.New("the visit has not happened yet")

// AskURL asks the user to visit a URL, for what must not pass through the client: credentials, payments, a third party's
// consent. The user's yes is consent, not completion: done says whether what the visit is for has happened. Where it is nil
// the consent is enough.
//
// done is called first, so that nothing is asked where nothing is missing. While it is false after the consent, the user is
// not asked again: done is called once a second for ten seconds, and then the client is told to come back without a
// question, which it does until it gives up. Then the call fails at the client; a new call asks again, unless the visit has
// happened meanwhile. ctx may end meanwhile, as in any handler.
//
// The URL must hold no secret, and whoever opens it must be checked to be the user who was asked. It is part of the
// question: one that is made anew in each round, with a random token in it, is asked anew in each round, so make it in a
// [Once]. Errors are those of [Ask] and of done.
func AskURL(ctx context.Context, key, message, url string, done func(ctx context.Context) (bool, error)) error {
	return AskAll(ctx, URLQuestion(key, message, url, done))
}

// URLQuestion is the question of [AskURL]. Beside questions that are open, a visit that has not happened is not waited for.
func URLQuestion(key, message, link string, done func(ctx context.Context) (bool, error)) Question {
	if u, err := url.Parse(link); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return Question{key: key, invalid: fmt.Errorf("%q is no URL that a browser opens", link)}
	}
	params := &mcp.ElicitParams{Mode: mcp.ElicitURL, Message: message, URL: link}
	q := newQuestion(key, mcp.MethodElicit, params, func(raw json.RawMessage) error {
		r, err := readElicitation(raw, nil)
		switch {
		case err != nil:
			return err
		case r.Action == mcp.ElicitDecline:
			return ErrDeclined
		case r.Action == mcp.ElicitCancel:
			return ErrCancelled
		case done != nil:
			return errURLPending // done has just said so
		}
		return nil
	})
	q.isDone = done
	return q
}

// awaitURLs gives visits that the user has consented to some time to happen. If that is not enough the client comes back.
func (c *call) awaitURLs(ctx context.Context, visits []Question) error {
	if len(visits) == 0 {
		return nil
	}
	enough, look := time.NewTimer(urlWait), time.NewTicker(urlPoll)
	defer enough.Stop()
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-enough.C:
			return c.askToComeBack(visits[0].key)
		case <-look.C:
		}
		var err error
		if visits, err = c.pendingURLs(ctx, visits); err != nil || len(visits) == 0 {
			return err
		}
	}
}

func (c *call) pendingURLs(ctx context.Context, visits []Question) (left []Question, err error) {
	for _, q := range visits {
		done, err := q.isDone(ctx)
		if err != nil {
			return nil, err
		}
		if !done {
			left = append(left, q)
			continue
		}
		c.reportURLDone(q)
	}
	return left, nil
}

// withElicitationID returns the request of a question, with an id where the client's revision has one for what is done elsewhere.
func (c *call) withElicitationID(q Question) mcp.InputRequest {
	r := q.request
	if q.isDone != nil && c.req.Revision == mcp.Revision20251125 {
		r.Params = rawjson.Set(r.Params, "elicitationId", strconv.AppendQuote(nil, c.elicitationID(q)))
	}
	return r
}

// elicitationID is the same in all rounds of a call, and that of no other.
func (c *call) elicitationID(q Question) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return questionDigest(mcp.InputRequest{Method: c.inputState().chain, Params: []byte(q.key)})
}

// reportURLDone tells the client that a visit which the user has consented to has happened, once, where its revision has a way to
// (client/elicitation: completion notifications).
func (c *call) reportURLDone(q Question) {
	if c.req.Revision != mcp.Revision20251125 {
		return
	}
	id, told := c.elicitationID(q), "\x00visited "+q.key
	c.mu.Lock()
	defer c.mu.Unlock()
	_, consented := c.input.answers[q.key]
	if _, again := c.input.memos[told]; again || !consented {
		return
	}
	c.input.memos[told] = []byte("true")
	params, err := mcp.Encode(mcp.ElicitationCompletedParams{ElicitationID: id})
	if err == nil {
		err = c.sendNotification(mcp.NotificationElicitationCompleted, params)
	}
	if err != nil {
		c.server.opts.Logger.Debug("a client was not told that a visit has happened", "err", err)
	}
}

// askToComeBack makes the call's result one that asks nothing, and has the client call again.
func (c *call) askToComeBack(key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return ErrCannotAsk
	}
	c.input.comeBack = true
	return fmt.Errorf("%w: %s: %w", ErrInputRequired, key, errURLPending)
}
