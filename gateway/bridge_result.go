package gateway

import (
	"cmp"

	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// keepResult keeps the result of the upstream's call. While the call is parked it counts, since its
// client may never come back for it.
func (b *bridge) keepResult(resp *mcp.Response, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resp, b.err = resp, err
	if b.request != nil || resp == nil || len(resp.Raw) <= quota.Uncounted || b.ctx.Err() != nil {
		return
	}
	b.kept = b.account().NewLease(b)
	if limit := b.kept.Resize(int64(len(resp.Raw))); limit != nil {
		b.dropResult(limit)
	}
}

// account returns the account of the client of the call.
func (b *bridge) account() quota.Account {
	client := quota.Client{Name: cmp.Or(b.caller.Principal, b.caller.Session), Anonymous: b.caller.Principal == ""}
	return quota.Account{Quota: b.core.opts.Quota, Client: client}
}

// noteShown takes note that the client knows that its task has completed. If it has seen the result
// too, the result makes room for all other bytes from then on.
func (b *bridge) noteShown(isDelivered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isShown = true
	if !isDelivered || b.isDelivered || b.kept == nil || b.resp == nil {
		return
	}
	b.isDelivered = true
	b.kept.Release()
	b.kept = b.account().NewCacheLease(b)
	if limit := b.kept.Resize(int64(len(b.resp.Raw))); limit != nil {
		b.dropResult(limit)
	}
}

// hasForgotten reports whether the task is gone, because its result was dropped after it had
// completed.
func (b *bridge) hasForgotten() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isForgotten
}

// takeResult returns the result of the upstream's call.
func (b *bridge) takeResult() (*mcp.Response, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept.Release()
	return b.resp, b.err
}

// peekResult is takeResult for a result that stays here, and continues to count.
func (b *bridge) peekResult() (*mcp.Response, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.resp, b.err
}

// CutOff implements [quota.Waiter].
func (b *bridge) CutOff(reason error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropResult(reason)
}

// dropResult replaces the result by an error. If the client knows that the task has completed, it
// removes the task, which must not fail any more. b.mu is held.
func (b *bridge) dropResult(reason error) {
	if b.isShown && b.hosted != nil {
		b.isForgotten = true
		b.core.hosted.removeTask(b.hosted)
	}
	b.resp, b.err = nil, mcp.Errorf(jsonrpc.CodeInternal, "the result was dropped: %s", reason)
}

// drop ends a call that is not parked any more, and drops its result. It does not wait for b.mu.
func (b *bridge) drop(why error) {
	b.cancel(why)
	go func() { _, _ = b.takeResult() }()
}
