package calling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// Connect returns a transport over conn; see package overconn for its contract.
func Connect(ctx context.Context, conn transport.Conn, in mcp.Inbound, endpoint string, opts transport.ClientOptions) (mcp.Transport, error) {
	sink, isTapped := framesink.Dialing(ctx), opts.Tap != nil
	opts.Tap = frames.WithSink(sink, opts.Tap)
	c := newCaller(frames.TapSent(conn, opts.Tap), in, opts)
	c.sink = sink
	if !isTapped { // a tap may wait or use the connection, which a delivery must not
		c.deliverer = frames.NewDeliverer(conn, opts.Tap)
		c.deliverer.SetReceiver(receiver{c})
	}
	go c.readFrames()
	if err := c.connectTo(ctx, endpoint); err != nil {
		return nil, err
	}
	return c, nil
}

// connectTo finds the server's era and remembers it. If it fails, it closes the caller.
func (c *caller) connectTo(ctx context.Context, endpoint string) error {
	err := mcpwire.CheckPinned(c.opts.Revision)
	var e era
	if err == nil {
		e, err = c.negotiateEra(ctx, endpoint)
	}
	if err != nil {
		c.Close()
		return err
	}
	c.setEra(e)
	if err := c.markConnected(); err != nil {
		c.Close()
		return err
	}
	if c.opts.Revision == "" {
		c.opts.Verdicts.Remember(endpoint, e.revision())
	}
	if c.lateProbe != nil {
		c.wg.Go(func() { c.awaitLateProbe(endpoint, *c.lateProbe) })
	}
	return nil
}

// era is everything that the two eras of the protocol do differently on the calling side.
type era interface {
	paramsEncoder
	revision() mcp.Revision
	// interceptRequest runs before a request is sent. handled reports that it has answered the
	// request itself, with a result or an error.
	interceptRequest(ctx context.Context, req *mcp.Request) (res *mcp.Response, err error, handled bool)
	// findReceivers appends the exchanges that a notification belongs to.
	findReceivers(n mcp.Notification, receivers []*exchange) []*exchange
	// answerQuestion answers a request of the server.
	answerQuestion(ctx context.Context, req *mcp.Request) (*mcp.Result, error)
}

func (c *caller) negotiateEra(ctx context.Context, endpoint string) (era, error) {
	known := c.opts.Revision
	if known == "" {
		known = c.opts.Verdicts.Lookup(endpoint)
	}
	if known == "" || known.Modern() {
		return c.probeServer(ctx)
	}
	e, err := c.performHandshake(ctx, known)
	if err == nil || c.opts.Revision != "" || ctx.Err() != nil {
		return e, err
	}
	c.opts.Verdicts.Remember(endpoint, "")
	if errors.Is(err, mcp.ErrConnection) {
		return nil, err
	}
	return c.probeServer(ctx)
}

// probeServer finds the server's era. It sends server/discover, and initialize too if the server
// is silent for ProbeTimeout. A modern answer wins whenever it arrives.
func (c *caller) probeServer(ctx context.Context) (era, error) {
	m := newModernEra(c, mcp.LatestRevision)
	discover, err := c.startExchange(nil, &mcp.Request{Method: mcp.MethodDiscover}, m)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", transport.ErrProbe, err)
	}
	p := &probe{c: c, modern: m, discover: discover, answer: discover.done}
	defer p.release()
	timer := time.NewTimer(cmp.Or(c.opts.ProbeTimeout, 3*time.Second))
	defer timer.Stop()
	for {
		var e era
		var err error
		select {
		case r := <-p.answer:
			e, err = p.handleAnswer(ctx, r)
		case <-timer.C:
			err = p.startHandshake()
		case r := <-p.handshake:
			e, err = p.handleHandshake(ctx, r)
		case <-ctx.Done():
			err = fmt.Errorf("the server has not answered: %w", context.Cause(ctx))
		}
		if e != nil || err != nil {
			return e, err
		}
	}
}

// probe is the search for the era of a server.
type probe struct {
	c         *caller
	modern    *modernEra
	discover  *exchange
	legacy    *exchange  // nil until initialize is sent
	answer    chan reply // to server/discover; nil once it has been read
	handshake chan reply // to initialize; nil before it is sent and once its answer has been read
	mayRepeat bool       // the server refused initialize, but not as an unknown method
}

// release ends the exchanges. A probe that may still be answered stays.
func (p *probe) release() {
	if p.legacy != nil {
		p.c.releaseExchange(p.legacy)
	}
	if p.c.lateProbe == nil {
		p.c.releaseExchange(p.discover)
	}
}

// handleAnswer handles the answer to server/discover. It returns neither an era nor an error if the
// answer to initialize decides.
func (p *probe) handleAnswer(ctx context.Context, r reply) (era, error) {
	p.discover.replyRead, p.answer = true, nil
	e, again, err := p.c.readProbeAnswer(p.modern, r)
	switch pinned := p.c.opts.Revision; {
	case e != nil || err != nil:
		return e, err
	case again && pinned.Modern():
		return nil, fmt.Errorf("the server does not speak revision %s, which is pinned: %w", pinned, cmp.Or(r.failure(), errNotDiscovered))
	case p.legacy == nil:
		e, err := p.c.performHandshake(ctx, mcp.LatestLegacyRevision)
		return e, markProbeError(err)
	case p.handshake == nil && p.mayRepeat:
		return p.repeatHandshake(ctx)
	case p.handshake == nil:
		return nil, errors.New("the server answers neither server/discover nor initialize as the protocol says")
	}
	return nil, nil
}

// repeatHandshake sends initialize again to a server that has refused it while server/discover was
// unanswered. Some proxies that were slow to start fail because both requests came at once.
func (p *probe) repeatHandshake(ctx context.Context) (era, error) {
	e, err := p.c.performHandshake(ctx, mcp.LatestLegacyRevision)
	if err != nil {
		return nil, markProbeError(fmt.Errorf("the server answers neither server/discover nor initialize: %w", err))
	}
	return e, nil
}

// startHandshake sends initialize to a silent server, unless a modern revision is pinned.
func (p *probe) startHandshake() (err error) {
	if p.c.opts.Revision.Modern() {
		return nil
	}
	if p.legacy, err = p.c.sendInitialize(mcp.LatestLegacyRevision); err != nil {
		return fmt.Errorf("%w: %w", transport.ErrProbe, err)
	}
	p.handshake = p.legacy.done
	return nil
}

// handleHandshake handles the answer to initialize. It prefers a modern answer that has already
// arrived. It returns neither an era nor an error if the answer to server/discover decides.
func (p *probe) handleHandshake(ctx context.Context, r reply) (era, error) {
	p.legacy.replyRead, p.handshake = true, nil
	select {
	case first := <-p.answer:
		p.discover.replyRead, p.answer = true, nil
		if e, _, err := p.c.readProbeAnswer(p.modern, first); e != nil || err != nil {
			return e, err
		}
	default:
	}
	if err := r.failure(); err != nil {
		p.mayRepeat = r.refused != nil && r.refused.Code != jsonrpc.CodeMethodNotFound
		switch {
		case p.answer != nil:
			return nil, nil // the answer to server/discover decides
		case p.mayRepeat:
			return p.repeatHandshake(ctx)
		}
		return nil, markProbeError(fmt.Errorf("the server answers neither server/discover nor initialize: %w", err))
	}
	if p.answer != nil {
		p.c.mu.Lock()
		p.c.lateProbe, p.discover.lateProbe = &lateProbe{p.modern, p.discover}, true
		p.c.mu.Unlock()
	}
	return p.c.finishHandshake(ctx, mcp.LatestLegacyRevision, r)
}

// lateProbe is a probe that was not answered before the handshake was.
type lateProbe struct {
	era      *modernEra
	discover *exchange
}

// awaitLateProbe waits for the answer to a late probe. If the server turns out to be modern, the
// next connection will be modern; this one stays legacy.
func (c *caller) awaitLateProbe(endpoint string, late lateProbe) {
	select {
	case r := <-late.discover.done:
		late.discover.replyRead = true
		if e, _, _ := c.readProbeAnswer(late.era, r); e != nil {
			c.opts.Verdicts.Remember(endpoint, e.revision())
		}
	case <-c.base.Done():
	}
	c.releaseExchange(late.discover)
}

var errNotDiscovered = errors.New("it answers server/discover with something else")

// markProbeError wraps [transport.ErrProbe] around the error of a handshake if the connection
// ended. Some legacy servers exit when they get a method that they do not know.
func markProbeError(err error) error {
	if errors.Is(err, mcp.ErrConnection) {
		return fmt.Errorf("%w: %w", transport.ErrProbe, err)
	}
	return err
}

// readProbeAnswer returns the modern era, or an error that ends the dial, or again if the server
// should be asked the legacy way.
func (c *caller) readProbeAnswer(m *modernEra, r reply) (e era, again bool, err error) {
	switch {
	case r.err != nil && c.carrier != nil:
		return nil, true, fatalProbeError(r.err)
	case errors.Is(r.err, mcp.ErrConnection):
		return nil, false, fmt.Errorf("%w: %w", transport.ErrProbe, r.err)
	case r.err != nil: // not a JSON-RPC 2.0 message
		return nil, true, nil
	case r.refused == nil:
		return c.readDiscovery(m, r)
	case r.refused.Code == mcp.CodeUnsupportedProtocolVersion:
		var data mcpwire.UnsupportedVersionData
		if mcp.Decode(r.refused.Data, &data) != nil || len(data.Supported) == 0 {
			return nil, true, nil
		}
		if slices.Contains(data.Supported, m.version) { // refused, though it speaks the revision: it may have been starting
			return m, false, nil
		}
		return nil, slices.ContainsFunc(data.Supported, isLegacy), noCommonVersion(data.Supported)
	case r.refused.Code == mcp.CodeHeaderMismatch || r.refused.Code == mcp.CodeMissingCapability:
		return m, false, nil
	}
	return nil, true, nil
}

// fatalProbeError returns the error of a probe over HTTP if it does not tell the server's era:
// the server is unreachable, or refuses for another reason. It returns nil if the error means a
// legacy server.
func fatalProbeError(err error) error {
	var answered interface{ MeansLegacy() bool } // implemented by HTTPError of package streamable
	if errors.Is(err, mcp.ErrConnection) || errors.As(err, &answered) && !answered.MeansLegacy() {
		return err
	}
	return nil
}

// addSupportedVersions adds the revisions that a server names in the data of its refusal to the
// message.
func addSupportedVersions(err error) error {
	var refused *mcp.Error
	var data mcpwire.UnsupportedVersionData
	if !errors.As(err, &refused) || mcp.Decode(refused.Data, &data) != nil || len(data.Supported) == 0 ||
		strings.Contains(refused.Message, string(data.Supported[0])) {
		return err
	}
	return fmt.Errorf("%w: the server speaks %v", err, data.Supported)
}

func isLegacy(r mcp.Revision) bool { return r.Known() && !r.Modern() }

// noCommonVersion returns an error unless supported contains a legacy revision that dowel speaks.
func noCommonVersion(supported []mcp.Revision) error {
	if slices.ContainsFunc(supported, isLegacy) {
		return nil
	}
	return fmt.Errorf("no common protocol version: the server speaks %v, dowel %v", supported, mcp.Revisions())
}

func (c *caller) readDiscovery(m *modernEra, r reply) (e era, again bool, err error) {
	var d mcp.DiscoverResult
	if mcp.Decode(r.result, &d) != nil || rawjson.Lookup(r.result, "supportedVersions") == nil {
		return nil, true, nil // some legacy servers answer any method with a result
	}
	if slices.Contains(d.SupportedVersions, m.version) {
		m.discovery = readEdgeMembers(r.result, m.version)
		return m, false, nil
	}
	return nil, true, noCommonVersion(d.SupportedVersions)
}

// performHandshake performs the legacy handshake with initialize.
func (c *caller) performHandshake(ctx context.Context, revision mcp.Revision) (era, error) {
	x, err := c.sendInitialize(revision)
	if err != nil {
		return nil, err
	}
	defer c.releaseExchange(x)
	select {
	case r := <-x.done:
		x.replyRead = true
		if err := r.failure(); err != nil {
			return nil, fmt.Errorf("initialize: %w", addSupportedVersions(err))
		}
		return c.finishHandshake(ctx, revision, r)
	case <-ctx.Done():
		return nil, fmt.Errorf("the server has not answered initialize: %w", context.Cause(ctx))
	}
}

func (c *caller) sendInitialize(revision mcp.Revision) (*exchange, error) {
	capabilities := c.opts.Capabilities
	if capabilities.Roots != nil {
		capabilities.Roots = &mcp.RootsCapability{ListChanged: true}
	}
	encoded, err := mcp.Encode(capabilities)
	if err != nil {
		return nil, err
	}
	params, err := mcp.Encode(mcpwire.InitializeParams{ProtocolVersion: revision, Capabilities: encoded, ClientInfo: c.opts.Info})
	if err != nil {
		return nil, err
	}
	params = mcpwire.AdaptParams(revision, mcpwire.MethodInitialize, params)
	return c.startExchange(nil, &mcp.Request{Method: mcpwire.MethodInitialize, Params: params}, rawParams{})
}

// finishHandshake checks the revision that the server has chosen and sends
// notifications/initialized.
func (c *caller) finishHandshake(ctx context.Context, asked mcp.Revision, r reply) (era, error) {
	var result mcpwire.InitializeResult
	if err := mcp.Decode(r.result, &result); err != nil {
		return nil, fmt.Errorf("the result of initialize is malformed: %w", err)
	}
	if !isLegacy(result.ProtocolVersion) {
		return nil, fmt.Errorf("no common protocol version: the server answered %s with %q, dowel speaks %v", asked, result.ProtocolVersion, mcp.Revisions())
	}
	if pin := c.opts.Revision; pin != "" && result.ProtocolVersion != pin {
		return nil, fmt.Errorf("the server speaks revision %s, but %s is pinned", result.ProtocolVersion, pin)
	}
	e := newLegacyEra(c, result, r.result)
	c.setEra(e) // the server may ask as soon as it has the notification
	done := jsonrpc.AppendNotification(nil, mcpwire.NotificationInitialized, nil)
	if c.carrier != nil {
		return e, c.postMessage(ctx, done)
	}
	if err := c.conn.Write(done); err != nil {
		return nil, wrapConnectionError(err)
	}
	return e, nil
}
