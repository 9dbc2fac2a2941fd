// Package callmark gives a call a mark that the journal records. By the mark, a program tells its
// own call from other clients' calls of the same tool. The mark travels in the request's _meta. It
// is random, so it tells servers nothing.
package callmark

import "context"

// Meta is the key of the mark in a request's _meta. The value is a string.
const Meta = "dowel/call"

// MaxLength limits the length of a mark, in bytes. The journal leaves out a longer one.
const MaxLength = 64

// contextKey is the context key of a mark.
type contextKey struct{}

// With returns a context for calls with the mark.
func With(ctx context.Context, mark string) context.Context {
	return context.WithValue(ctx, contextKey{}, mark)
}

// From returns the mark of a context, or "".
func From(ctx context.Context) string {
	mark, _ := ctx.Value(contextKey{}).(string)
	return mark
}
