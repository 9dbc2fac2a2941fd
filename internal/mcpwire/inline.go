package mcpwire

import "context"

// inlineKey is the context key of [WithInlineNotify].
type inlineKey struct{}

// WithInlineNotify returns a context for a subscription whose Notify never waits, so that a
// transport may call it on the goroutine that has received the notification.
func WithInlineNotify(ctx context.Context) context.Context {
	return context.WithValue(ctx, inlineKey{}, true)
}

// HasInlineNotify reports whether ctx comes from WithInlineNotify.
func HasInlineNotify(ctx context.Context) bool { return ctx.Value(inlineKey{}) != nil }
