package streamable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/startphase"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/calling"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// ErrSessionLost is wrapped by the errors of requests if the server does not know their session any
// more. A client dials again and repeats the requests that are safe to repeat.
var ErrSessionLost = fmt.Errorf("%w: the server has lost the session", mcp.ErrConnection)

// carrier sends the messages of one client and reads the answers, a [calling.Carrier].
type carrier struct {
	template     *http.Request // copied for each request, so that the URL is parsed once
	client       *http.Client
	endpoint     httpwire.Endpoint
	maxMessage   int
	headers      mirroredHeaders
	tap          transport.Tap
	sink         framesink.Sink  // nil without a recorder
	dialing      context.Context // of the dial, for its observers
	logger       *slog.Logger
	caller       calling.Caller
	toolHeaders  toolHeaders
	life         context.Context // ends with Close
	cancel       context.CancelFunc
	lifetimes    lifetimePool
	streamReader sync.WaitGroup // reads the session stream
	streamOpen   chan struct{}  // closed when requests need not wait for the stream any more

	mu            sync.Mutex
	session       string // the id, or empty
	streamStarted bool   // the session stream is being read
	closed        bool
}

func newCarrier(template *http.Request, u URL, opts transport.ClientOptions) *carrier {
	client, endpoint := u.Client, httpwire.Endpoint(u)
	if client == nil {
		client = sharedClient
	}
	c := &carrier{
		template: template, client: httpwire.GuardRedirects(client), endpoint: endpoint, maxMessage: endpoint.Limit(),
		headers: mirroredHeaders{opts.Extensions}, tap: opts.Tap, logger: opts.Logger,
		streamOpen: make(chan struct{}),
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	c.life, c.cancel = context.WithCancel(context.Background())
	return c
}

// Carry implements [calling.Carrier].
func (c *carrier) Carry(ctx context.Context, m *calling.Outbound, back calling.Receiver) error {
	err := c.exchangeMessage(ctx, m, back)
	if err != nil && c.life.Err() != nil {
		return fmt.Errorf("%w: %w", mcp.ErrConnection, mcp.ErrClosed)
	}
	return err
}

func (c *carrier) exchangeMessage(ctx context.Context, m *calling.Outbound, back calling.Receiver) error {
	ctx, abort, done := c.withLifetime(ctx)
	defer done()
	if back != nil {
		back.SetAbort(abort)
		defer back.SetAbort(nil) // before the lifetime is reused
	}
	if m.Method == mcp.MethodDiscover || m.Method == mcpwire.MethodInitialize { // these may need a login
		ctx = startphase.Inherit(ctx, c.dialing)
	}
	r, err := c.newRequest(ctx, http.MethodPost, m)
	if err != nil {
		return err
	}
	c.showFrame(transport.Sent, m.Frame, r.Header)
	resp, err := c.sendRequest(r)
	if err != nil {
		return c.requestError(ctx, err)
	}
	defer resp.Body.Close()
	if err := c.checkSession(m, r, resp); err != nil {
		return err
	}
	switch media := mediaType(resp.Header); {
	case resp.StatusCode >= 300:
		return c.readRefusal(m, resp, back)
	case back == nil:
		return c.handleAccepted(m)
	case media == "text/event-stream":
		return c.readStream(ctx, m, resp, back)
	case media == "application/json" || media == "":
		return c.readDocument(m, resp, back)
	}
	return newHTTPError(resp)
}

// showFrame shows a frame to the tap and to the recorder.
func (c *carrier) showFrame(kind transport.FrameKind, frame []byte, header http.Header) {
	if c.sink != nil {
		c.sink.AddFrame(framesink.Direction(kind), frame, header)
	}
	frames.Show(c.tap, kind, frame, header)
}

// sendRequest sends a request. It avoids http.Client if that has nothing to add to its transport,
// because it costs a tenth of a call.
func (c *carrier) sendRequest(r *http.Request) (*http.Response, error) {
	if c.client.Jar != nil || c.client.Timeout != 0 || r.URL.User != nil {
		return c.client.Do(r)
	}
	transport := c.client.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	resp, err := transport.RoundTrip(r)
	if err == nil && resp.Request == nil {
		resp.Request = r
	}
	if err != nil || resp.StatusCode < 300 || resp.StatusCode >= 400 || resp.Header.Get("Location") == "" {
		return resp, err
	}
	resp.Body.Close()
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return c.client.Do(again)
}

// newRequest makes a request with the header fields of the user and of the protocol.
func (c *carrier) newRequest(ctx context.Context, method string, m *calling.Outbound) (*http.Request, error) {
	r := c.template.WithContext(ctx)
	r.Method, r.Header = method, make(http.Header, 8)
	if m.Frame != nil {
		r.ContentLength = int64(len(m.Frame))
		// net/http knows these types: it sends such a body together with the header.
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(m.Frame)), nil }
		r.Body, _ = r.GetBody()
	}
	if err := c.endpoint.AddHeader(ctx, r.Header); err != nil {
		return nil, err
	}
	switch method {
	case http.MethodPost:
		r.Header["Content-Type"] = postType
		r.Header["Accept"] = postAccept
	case http.MethodGet:
		r.Header["Accept"] = getAccept
	}
	c.setMetadata(r.Header, m)
	return r, nil
}

// Values of header fields. All requests share them, and net/http does not change them.
var (
	postType   = []string{"application/json"}
	postAccept = []string{"application/json, text/event-stream"}
	getAccept  = []string{"text/event-stream"}
)

// sharedValues are header values that most requests have.
var sharedValues = func() map[string][]string {
	all := map[string][]string{}
	for _, r := range mcp.Revisions() {
		all[string(r)] = []string{string(r)}
	}
	for method := range mcpwire.MethodNames() {
		all[method] = []string{method}
	}
	return all
}()

func headerValue(value string) []string {
	if shared, ok := sharedValues[value]; ok {
		return shared
	}
	return []string{value}
}

// setMetadata sets the fields that mirror the message or name the session (basic/transports:
// request metadata).
func (c *carrier) setMetadata(h http.Header, m *calling.Outbound) {
	if m.Revision != "" {
		h[mcpwire.HeaderProtocolVersion] = headerValue(string(m.Revision))
	}
	if !m.Revision.Modern() {
		if id := c.sessionID(); id != "" && m.Method != mcpwire.MethodInitialize {
			h[mcpwire.HeaderSessionID] = []string{id}
		}
		return
	}
	if m.Method != "" {
		h[mcpwire.HeaderMethod] = headerValue(m.Method)
	}
	if field := c.headers.vocabulary.NameField(m.Method); field != "" {
		if name, ok := rawjson.String(rawjson.Lookup(m.Params, field)); ok {
			h[mcpwire.HeaderName] = []string{mcpwire.EncodeHeaderValue(name)}
		}
	}
	if m.Method == mcp.MethodCallTool {
		forwardParamFields(h, m.Header)
		c.toolHeaders.addFields(h, m.Params)
	}
}

func (c *carrier) sessionID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// checkSession handles the session id in an answer, or the loss of the session.
func (c *carrier) checkSession(m *calling.Outbound, r *http.Request, resp *http.Response) error {
	switch sent := r.Header[mcpwire.HeaderSessionID]; {
	case m.Method == mcpwire.MethodInitialize && resp.StatusCode < 300:
		id := resp.Header.Get(mcpwire.HeaderSessionID)
		for _, b := range []byte(id) {
			if b < 0x21 || b > 0x7e {
				return errors.New("the server's session id holds more than visible ASCII characters")
			}
		}
		c.mu.Lock()
		c.session = id
		c.mu.Unlock()
	case resp.StatusCode == http.StatusNotFound && len(sent) > 0:
		c.reportLostSession(sent[0])
		return ErrSessionLost
	}
	return nil
}

// isSessionDenied reports whether an answer says that the session does not exist. Its status should
// be 404. Servers made after an example of the TypeScript SDK answer 400 with an error without an
// id, the reference servers among them. An error with an id answers the request itself. The error's
// code means nothing here, because revision 2026-07-28 gives codes from -32000 to -32019 no
// meaning.
func isSessionDenied(e *HTTPError) bool {
	if e.Status != http.StatusBadRequest || !bytes.Contains(bytes.ToLower(e.Body), []byte("session")) {
		return false
	}
	msg, err := jsonrpc.Parse(e.Body, nil)
	return err != nil || msg.Error != nil && msg.ID.IsZero()
}

// reportLostSession reports the loss of a session once.
func (c *carrier) reportLostSession(id string) {
	c.mu.Lock()
	first := c.session == id
	if first {
		c.session = ""
	}
	c.mu.Unlock()
	if first {
		c.caller.Down(ErrSessionLost)
	}
}

// requestError returns the error of a request that got no answer.
func (c *carrier) requestError(ctx context.Context, err error) error {
	if ctx.Err() != nil && c.life.Err() == nil {
		return context.Cause(ctx)
	}
	if refused := httpwire.AsRefusal(err); refused != nil {
		return refused
	}
	return fmt.Errorf("%w: %w", mcp.ErrConnection, httpwire.WithoutURL(err))
}

// handleAccepted ends the sending of a message that has no response.
func (c *carrier) handleAccepted(m *calling.Outbound) error {
	if m.Method == mcpwire.NotificationInitialized {
		c.startSessionStream()
	}
	return nil
}

// readRefusal reads an answer with an HTTP error status. If it contains an error of the protocol,
// that is delivered, unless the status is about credentials, rates or the server's state.
func (c *carrier) readRefusal(m *calling.Outbound, resp *http.Response, back calling.Receiver) error {
	limit, media := 0, mediaType(resp.Header)
	if media == "application/json" || media == "" {
		limit = c.maxMessage
	}
	failed, body := readHTTPError(resp, limit)
	isAnswer := m.Method == "" // a replica that has not asked refuses an answer, but knows the session
	if sent := resp.Request.Header[mcpwire.HeaderSessionID]; len(sent) > 0 && !isAnswer && isSessionDenied(failed) {
		c.reportLostSession(sent[0])
		return ErrSessionLost
	}
	if back == nil || limit == 0 {
		return failed
	}
	msg, err := jsonrpc.Parse(body, nil)
	if err == nil {
		c.showFrame(transport.Received, body, resp.Header)
	}
	if err != nil || !msg.IsResponse() || !failed.MeansLegacy() || m.Method == mcpwire.MethodInitialize {
		return failed // if initialize fails too, the status tells whether the older transport may work
	}
	if !back.Receive(body) {
		return failed
	}
	return nil
}

// readDocument reads an answer that is one message.
func (c *carrier) readDocument(m *calling.Outbound, resp *http.Response, back calling.Receiver) error {
	body := io.Reader(resp.Body)
	if resp.ContentLength < 0 || resp.ContentLength > int64(c.maxMessage) {
		body = io.LimitReader(body, int64(c.maxMessage)+1)
	}
	frame, err := httpwire.ReadBody(body, resp.ContentLength)
	switch {
	case err != nil:
		return c.requestError(resp.Request.Context(), err)
	case len(frame) > c.maxMessage:
		return fmt.Errorf("the answer is larger than %d bytes", c.maxMessage)
	case len(bytes.TrimSpace(frame)) == 0:
		return fmt.Errorf("the server answered %s with HTTP status %d and no message", m.Method, resp.StatusCode)
	}
	c.deliverFrame(m, frame, resp.Header, back)
	return nil
}

// deliverFrame gives a frame to the receiver, without the tools that must not be used.
func (c *carrier) deliverFrame(m *calling.Outbound, frame []byte, header http.Header, back calling.Receiver) (done bool) {
	c.showFrame(transport.Received, frame, header)
	if m.Method == mcp.MethodListTools && m.Revision.Modern() {
		frame = c.learnTools(frame)
	}
	return back.Receive(frame)
}

// learnTools learns the mirrored arguments from a list of tools, and removes tools with invalid
// ones.
func (c *carrier) learnTools(frame []byte) []byte {
	result := rawjson.Lookup(frame, "result")
	if result == nil {
		return frame
	}
	clean, rejected := c.toolHeaders.learnTools(result)
	if len(rejected) == 0 {
		return frame
	}
	for _, tool := range rejected {
		c.logger.Warn("a tool of the server is left out: its x-mcp-header is invalid", "tool", tool.name, "reason", tool.reason)
	}
	return rawjson.Set(frame, "result", clean)
}

func mediaType(h http.Header) string {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// Close implements [calling.Carrier]. It ends the session, if the server can be reached.
func (c *carrier) Close() error {
	const maxDelete = 2 * time.Second
	c.mu.Lock()
	id := c.session
	c.session, c.closed = "", true
	c.mu.Unlock()
	c.cancel()
	c.streamReader.Wait()
	if id == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxDelete)
	defer cancel()
	r, err := c.newRequest(ctx, http.MethodDelete, &calling.Outbound{Revision: c.caller.Speaks()})
	if err != nil {
		return err
	}
	r.Header[mcpwire.HeaderSessionID] = []string{id}
	if resp, err := c.sendRequest(r); err == nil { // an unreachable server has lost the session anyway
		resp.Body.Close()
	}
	return nil
}
