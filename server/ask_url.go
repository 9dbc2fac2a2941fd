package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// One round waits urlWait for the user to finish at a URL, and checks every urlPoll. Clients may
// call again at once if nothing is asked, and give up after some rounds, so the wait of each round
// gives the user the time.
const (
	urlWait = 10 * time.Second
	urlPoll = time.Second
)

// errURLPending reports that the user agreed to visit a URL but is not done there.
var errURLPending = errors.New("the visit has not happened yet")

// AskURL asks the user to visit a URL, for data that must not pass through the client: credentials,
// payments, a third party's consent. The user's agreement is consent, not completion: done reports
// whether the user has finished at the URL. If done is nil, consent is enough.
//
// AskURL first calls done, so that it asks nothing if nothing is missing. After the consent it does
// not ask again: it calls done once a second for ten seconds, and then tells the client to call
// again without a question. The client does so until it gives up, and then its call fails. A new
// call asks again, unless the user has finished meanwhile. ctx may end meanwhile, as in any
// handler.
//
// The URL must not contain a secret, and the page must check that its visitor is the user who was
// asked. The URL is part of the question: if it contains a random token, make it in [Once], or each
// round asks a new question. The errors are the errors of [Ask] and of done.
func AskURL(ctx context.Context, key, message, url string, done func(ctx context.Context) (bool, error)) error {
	return AskAll(ctx, URLQuestion(key, message, url, done))
}

// URLQuestion is the question of [AskURL]. While other questions are open, AskAll does not wait for
// the user to finish at the URL.
func URLQuestion(key, message, link string, done func(ctx context.Context) (bool, error)) Question {
	if u, err := url.Parse(link); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return Question{key: key, invalid: fmt.Errorf("%q is not a URL that a browser opens", link)}
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
			return errURLPending // done has just returned false
		}
		return nil
	})
	q.isDone = done
	return q
}

// awaitURLs gives the user some time to finish at the URLs. Then it tells the client to call again.
func (c *call) awaitURLs(ctx context.Context, questions []Question) error {
	if len(questions) == 0 {
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
			return c.askToComeBack(questions[0].key)
		case <-look.C:
		}
		var err error
		if questions, err = c.pendingURLs(ctx, questions); err != nil || len(questions) == 0 {
			return err
		}
	}
}

func (c *call) pendingURLs(ctx context.Context, questions []Question) (left []Question, err error) {
	for _, q := range questions {
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

// withElicitationID returns the request of a question. Revision 2025-11-25 gets an id, which its
// completion notification refers to.
func (c *call) withElicitationID(q Question) mcp.InputRequest {
	r := q.request
	if q.isDone != nil && c.req.Revision == mcp.Revision20251125 {
		r.Params = rawjson.Set(r.Params, "elicitationId", strconv.AppendQuote(nil, c.elicitationID(q)))
	}
	return r
}

// elicitationID returns an id that is the same in all rounds of the call and unique to the
// question.
func (c *call) elicitationID(q Question) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return questionDigest(mcp.InputRequest{Method: c.inputState().chain, Params: []byte(q.key)})
}

// reportURLDone tells the client, once, that the user has finished at a URL, if its revision has a
// notification for that (client/elicitation: completion notifications).
func (c *call) reportURLDone(q Question) {
	if c.req.Revision != mcp.Revision20251125 {
		return
	}
	id, reported := c.elicitationID(q), "\x00visited "+q.key
	c.mu.Lock()
	defer c.mu.Unlock()
	_, consented := c.input.answers[q.key]
	if _, again := c.input.memos[reported]; again || !consented {
		return
	}
	c.input.memos[reported] = []byte("true")
	params, err := mcp.Encode(mcpwire.ElicitationCompletedParams{ElicitationID: id})
	if err == nil {
		err = c.sendNotification(mcpwire.NotificationElicitationCompleted, params)
	}
	if err != nil {
		c.server.opts.Logger.Debug("cannot notify a client that an elicitation is complete", "err", err)
	}
}

// askToComeBack makes the call's result one without questions, after which the client calls again.
func (c *call) askToComeBack(key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return errCannotAsk
	}
	c.input.comeBack = true
	return fmt.Errorf("%w: %s: %w", ErrInputRequired, key, errURLPending)
}
