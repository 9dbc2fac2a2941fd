package mcpwire

import "context"

type refusalKey struct{}

// WithRefusals returns a context for a subscriptions/listen request. refused is called with the
// error of the server for each resource to which it refuses a subscription. That happens before the
// acknowledgement, which cannot carry the error, and again when the request is repeated.
func WithRefusals(ctx context.Context, refused func(uri string, err error)) context.Context {
	return context.WithValue(ctx, refusalKey{}, refused)
}

// NoteRefusal calls the function of [WithRefusals], if the context has one.
func NoteRefusal(ctx context.Context, uri string, err error) {
	if refused, ok := ctx.Value(refusalKey{}).(func(string, error)); ok {
		refused(uri, err)
	}
}
