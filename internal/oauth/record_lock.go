package oauth

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"
)

// ErrLockLost says that another process may change a record by now. No token of it may be used.
var ErrLockLost = errors.New("the lock of the login was lost before the request was sent: try again")

type recordLockKey struct{}

// recordLock is the lock of a record, as far as a change of the record must know it.
type recordLock struct {
	held atomic.Pointer[context.Context]
}

// WithRecordLock returns the context of a change of a record. A store that can lose its lock calls
// [NoteRecordLock] with it.
func WithRecordLock(ctx context.Context) context.Context {
	return context.WithValue(ctx, recordLockKey{}, &recordLock{})
}

// NoteRecordLock says for the change with ctx that the lock of the record ends with held.
func NoteRecordLock(ctx, held context.Context) {
	if l, ok := ctx.Value(recordLockKey{}).(*recordLock); ok {
		l.held.Store(&held)
	}
}

// WhileLocked returns a context that ends with ctx, or with [ErrLockLost] when the lock of the
// record is lost. Without such a lock it is ctx.
func WhileLocked(ctx context.Context) (context.Context, context.CancelFunc) {
	locked, _, cancel := whileLocked(ctx)
	return locked, cancel
}

// UntilSent is [WhileLocked] for one HTTP request: when its connection is there and it is sent, the
// lock does not end it any more, because its answer would be lost.
func UntilSent(ctx context.Context) (context.Context, context.CancelFunc) {
	locked, forget, cancel := whileLocked(ctx)
	if forget == nil {
		return locked, cancel
	}
	return httptrace.WithClientTrace(locked, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { forget() }}), cancel
}

// whileLocked is WhileLocked. After forget, which is nil without a lock, the lock counts no more.
func whileLocked(ctx context.Context) (locked context.Context, forget func() bool, cancel context.CancelFunc) {
	l, _ := ctx.Value(recordLockKey{}).(*recordLock)
	if l == nil || l.held.Load() == nil {
		return ctx, nil, func() {}
	}
	held := *l.held.Load()
	locked, end := context.WithCancelCause(ctx)
	if held.Err() != nil {
		end(ErrLockLost)
	}
	forget = context.AfterFunc(held, func() { end(ErrLockLost) })
	return locked, forget, func() { forget(); end(nil) }
}
