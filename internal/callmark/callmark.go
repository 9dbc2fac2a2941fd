// Package callmark gives a call a mark that the journal records, so that a program finds the frames
// of its own call among those of other clients that call the same tool. The mark travels in the
// request's _meta, and is random: it tells servers nothing.
package callmark

import "context"

// Meta is the key of the mark in a request's _meta. The value is a string.
const Meta = "dowel/call"

// MaxLength limits the length of a mark, in bytes. The journal leaves out a longer one.
const MaxLength = 64

// contextKey is the context key of a mark.
type contextKey struct{}

// With returns a context that marks the calls that are made with it.
func With(ctx context.Context, mark string) context.Context {
	return context.WithValue(ctx, contextKey{}, mark)
}

// From returns the mark of a context, or "".
func From(ctx context.Context) string {
	mark, _ := ctx.Value(contextKey{}).(string)
	return mark
}
