package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// ErrProbe is wrapped by the error of [Connect] when the connection ended while the server was asked for its era: an old
// server that died of a method it does not know, most likely. Connect again with a legacy revision pinned.
var ErrProbe = errors.New("the connection ended during the probe")

// Connect makes a ready transport of a connection. It finds out which era the server speaks, unless the options pin a
// revision or the endpoint's verdict is remembered, and remembers it. The transport owns conn from then on; where
// Connect fails, it has closed it. ctx bounds Connect, not the transport.
func Connect(ctx context.Context, conn Conn, in mcp.Inbound, endpoint string, opts ClientOptions) (mcp.Transport, error) {
	c := newCaller(tapSent(conn, opts.Tap), in, opts)
	go c.read()
	if err := c.connect(ctx, endpoint); err != nil {
		return nil, err
	}
	return c, nil
}

// connect makes the caller ready; where it fails, the caller is closed.
func (c *caller) connect(ctx context.Context, endpoint string) error {
	err := c.opts.Check()
	var speak dialect
	if err == nil {
		speak, err = c.negotiate(ctx, endpoint)
	}
	if err != nil {
		c.Close()
		return err
	}
	c.ready(speak)
	if err := c.connected(); err != nil {
		c.Close()
		return err
	}
	if c.opts.Revision == "" {
		c.opts.Memory().Remember(endpoint, speak.revision())
	}
	if c.late != nil {
		c.wg.Go(func() { c.heed(endpoint, *c.late) })
	}
	return nil
}

// dialect is what the two eras do differently on the calling side.
type dialect interface {
	// dialectParams appends a request's params, with what the era puts into _meta.
	dialectParams
	revision() mcp.Revision
	// roundTrip serves methods that do not simply go over the wire; handled is false for all others.
	roundTrip(ctx context.Context, req *mcp.Request) (res *mcp.Response, err error, handled bool)
	// notification appends the exchanges that a notification belongs to.
	notification(n mcp.Notification, takers []*exchange) []*exchange
	// request answers what the server asks.
	request(ctx context.Context, req *mcp.Request) (*mcp.Result, error)
}

func (c *caller) negotiate(ctx context.Context, endpoint string) (dialect, error) {
	known := c.opts.Revision
	if known == "" {
		known = c.opts.Memory().Lookup(endpoint)
	}
	if known == "" || known.Modern() {
		return c.probe(ctx, known)
	}
	speak, err := c.initialize(ctx, known)
	if err == nil || c.opts.Revision != "" || ctx.Err() != nil {
		return speak, err
	}
	c.opts.Memory().Remember(endpoint, "")
	if errors.Is(err, mcp.ErrConnection) {
		return nil, err
	}
	return c.probe(ctx, "")
}

// probe asks for the server's era with server/discover, and the legacy way too when nothing comes back for a while.
func (c *caller) probe(ctx context.Context, known mcp.Revision) (dialect, error) {
	m := newModernCaller(c, mcp.LatestRevision)
	discover, err := c.start(&mcp.Request{Method: mcp.MethodDiscover}, m)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProbe, err)
	}
	defer func() {
		if c.late == nil {
			c.drop(discover)
		}
	}()
	var legacy *exchange
	answer, handshake := discover.done, chan reply(nil) // nil where nothing is waited for
	timer := time.NewTimer(orDefault(c.opts.ProbeTimeout, 3*time.Second))
	defer timer.Stop()
	for silent := timer.C; ; {
		select {
		case r := <-answer:
			discover.answered, answer = true, nil
			speak, again, err := c.judge(m, r)
			if speak != nil || err != nil {
				return speak, err
			}
			if again && c.opts.Revision.Modern() {
				return nil, fmt.Errorf("the server does not speak revision %s, which is pinned: %w", c.opts.Revision, cmp.Or(r.failure(), errUndiscovered))
			}
			if legacy == nil {
				speak, err := c.initialize(ctx, mcp.LatestLegacyRevision)
				return speak, diedOfProbe(err)
			}
			if handshake == nil {
				return nil, errors.New("the server answers neither server/discover nor initialize as the protocol says")
			}
		case <-silent:
			if c.opts.Revision.Modern() {
				silent = nil
				continue
			}
			if legacy, err = c.startInitialize(mcp.LatestLegacyRevision); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrProbe, err)
			}
			defer c.drop(legacy)
			handshake, silent = legacy.done, nil
		case r := <-handshake:
			legacy.answered, handshake = true, nil
			select { // a modern answer that came before wins, whichever the runtime picks first
			case first := <-answer:
				discover.answered, answer = true, nil
				if speak, _, err := c.judge(m, first); speak != nil || err != nil {
					return speak, err
				}
			default:
			}
			if err := r.failure(); err != nil {
				if answer == nil {
					return nil, diedOfProbe(fmt.Errorf("the server answers neither server/discover nor initialize: %w", err))
				}
				continue
			}
			if answer != nil {
				c.mu.Lock()
				c.late, discover.late = &lateAnswer{m, discover}, true
				c.mu.Unlock()
			}
			return c.initialized(ctx, mcp.LatestLegacyRevision, r)
		case <-ctx.Done():
			return nil, fmt.Errorf("the server has not answered: %w", context.Cause(ctx))
		}
	}
}

// lateAnswer is a probe whose answer was not waited for any more, since the server had taken the handshake.
type lateAnswer struct {
	speak    *modernCaller
	discover *exchange
}

// heed remembers that the server is modern after all: this connection stays what it is, and the next one is modern.
func (c *caller) heed(endpoint string, late lateAnswer) {
	select {
	case r := <-late.discover.done:
		late.discover.answered = true
		if speak, _, _ := c.judge(late.speak, r); speak != nil {
			c.opts.Memory().Remember(endpoint, speak.revision())
		}
	case <-c.base.Done():
	}
	c.drop(late.discover)
}

var errUndiscovered = errors.New("it answers server/discover with something else")

// diedOfProbe marks the error of a handshake that the connection did not survive: some servers refuse what they do not
// know and exit.
func diedOfProbe(err error) error {
	if errors.Is(err, mcp.ErrConnection) {
		return fmt.Errorf("%w: %w", ErrProbe, err)
	}
	return err
}

// judge reads the answer to the probe: a dialect, an error that ends the dial, or (again) a legacy server.
func (c *caller) judge(m *modernCaller, r reply) (speak dialect, again bool, err error) {
	switch {
	case r.err != nil && c.carrier != nil:
		return nil, true, outrightly(r.err)
	case errors.Is(r.err, mcp.ErrConnection):
		return nil, false, fmt.Errorf("%w: %w", ErrProbe, r.err)
	case r.err != nil: // no message of JSON-RPC 2.0
		return nil, true, nil
	case r.refused == nil:
		return c.discovered(m, r)
	case r.refused.Code == mcp.CodeUnsupportedProtocolVersion:
		var data mcp.UnsupportedVersionData
		if mcp.Decode(r.refused.Data, &data) != nil || len(data.Supported) == 0 {
			return nil, true, nil
		}
		if slices.Contains(data.Supported, m.version) { // it was in the course of becoming so, perhaps
			return m, false, nil
		}
		return nil, slices.ContainsFunc(data.Supported, isLegacy), noCommonVersion(data.Supported)
	case r.refused.Code == mcp.CodeHeaderMismatch || r.refused.Code == mcp.CodeMissingCapability:
		return m, false, nil
	}
	return nil, true, nil
}

// outrightly returns the error of a probe over HTTP that says nothing of the server's era: the server cannot be reached, or
// it refuses for reasons of its own. What is left means a legacy server.
func outrightly(err error) error {
	var answered interface{ MeansLegacy() bool } // an HTTPError of package overhttp
	if errors.Is(err, mcp.ErrConnection) || errors.As(err, &answered) && !answered.MeansLegacy() {
		return err
	}
	return nil
}

// speaksOthers adds the revisions that a server names in the data of its refusal.
func speaksOthers(err error) error {
	var refused *mcp.Error
	var data mcp.UnsupportedVersionData
	if !errors.As(err, &refused) || mcp.Decode(refused.Data, &data) != nil || len(data.Supported) == 0 ||
		strings.Contains(refused.Message, string(data.Supported[0])) {
		return err
	}
	return fmt.Errorf("%w: the server speaks %v", err, data.Supported)
}

func isLegacy(r mcp.Revision) bool { return r.Known() && !r.Modern() }

// noCommonVersion is an error unless a legacy revision is among those that the server speaks.
func noCommonVersion(supported []mcp.Revision) error {
	if slices.ContainsFunc(supported, isLegacy) {
		return nil
	}
	return fmt.Errorf("no common protocol version: the server speaks %v, dowel %v", supported, mcp.Revisions())
}

func (c *caller) discovered(m *modernCaller, r reply) (speak dialect, again bool, err error) {
	var d mcp.DiscoverResult
	if mcp.Decode(r.result, &d) != nil || rawjson.Lookup(r.result, "supportedVersions") == nil {
		return nil, true, nil // a legacy server that answers anything to anything
	}
	if slices.Contains(d.SupportedVersions, m.version) {
		m.first = m.response(r.result)
		return m, false, nil
	}
	return nil, true, noCommonVersion(d.SupportedVersions)
}

// initialize performs the legacy handshake.
func (c *caller) initialize(ctx context.Context, revision mcp.Revision) (dialect, error) {
	x, err := c.startInitialize(revision)
	if err != nil {
		return nil, err
	}
	defer c.drop(x)
	select {
	case r := <-x.done:
		x.answered = true
		if err := r.failure(); err != nil {
			return nil, fmt.Errorf("initialize: %w", speaksOthers(err))
		}
		return c.initialized(ctx, revision, r)
	case <-ctx.Done():
		return nil, fmt.Errorf("the server has not answered initialize: %w", context.Cause(ctx))
	}
}

func (c *caller) startInitialize(revision mcp.Revision) (*exchange, error) {
	capabilities := c.opts.Capabilities
	if capabilities.Roots != nil {
		capabilities.Roots = &mcp.RootsCapability{ListChanged: true}
	}
	encoded, err := mcp.Encode(capabilities)
	if err != nil {
		return nil, err
	}
	params, err := mcp.Encode(mcp.InitializeParams{ProtocolVersion: revision, Capabilities: encoded, ClientInfo: c.opts.Info})
	if err != nil {
		return nil, err
	}
	params = mcpwire.AdaptParams(revision, mcp.MethodInitialize, params)
	return c.start(&mcp.Request{Method: mcp.MethodInitialize, Params: params}, plain{})
}

// initialized ends the handshake: the server's version has to be one that dowel speaks.
func (c *caller) initialized(ctx context.Context, asked mcp.Revision, r reply) (dialect, error) {
	var result mcp.InitializeResult
	if err := mcp.Decode(r.result, &result); err != nil {
		return nil, fmt.Errorf("the result of initialize is malformed: %w", err)
	}
	if !isLegacy(result.ProtocolVersion) {
		return nil, fmt.Errorf("no common protocol version: the server answered %s with %q, dowel speaks %v", asked, result.ProtocolVersion, mcp.Revisions())
	}
	if pin := c.opts.Revision; pin != "" && result.ProtocolVersion != pin {
		return nil, fmt.Errorf("the server speaks revision %s, but %s is pinned", result.ProtocolVersion, pin)
	}
	speak := newLegacyCaller(c, result, r.result)
	c.ready(speak) // before the server may ask
	done := jsonrpc.AppendNotification(nil, mcp.NotificationInitialized, nil)
	if c.carrier != nil {
		return speak, c.post(ctx, done)
	}
	if err := c.conn.Write(done); err != nil {
		return nil, connectionError(err)
	}
	return speak, nil
}
