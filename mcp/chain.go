package mcp

import "context"

// Keyed is a [Handler] with keys of its own, which transports that need keys take: a server's.
type Keyed interface {
	Keys() *Keys
}

// Versed is a [Handler] with a vocabulary of its own, which transports take: a server's. It may be nil.
type Versed interface {
	Vocabulary() *Vocabulary
}

// around returns outer with what inner, around which it is, has beyond it.
func around(outer, inner Handler) Handler {
	k := kept{Handler: outer}
	hears, knows, keys := k.take(outer)
	heard, known, keyed := k.take(inner)
	if hears == heard && knows == known && keys == keyed {
		return outer
	}
	if k.keys != nil {
		return struct {
			kept
			Keyed
		}{k, k.keys}
	}
	return k
}

// kept is a Handler with what those that it is around have.
type kept struct {
	Handler
	notices NotificationHandler
	versed  Versed
	keys    Keyed
}

// take keeps what h has and is not kept yet, and reports what there is now.
func (k *kept) take(h Handler) (notices, versed, keys bool) {
	if k.notices == nil {
		k.notices, _ = h.(NotificationHandler)
	}
	if k.versed == nil {
		k.versed, _ = h.(Versed)
	}
	if k.keys == nil {
		k.keys, _ = h.(Keyed)
	}
	return k.notices != nil, k.versed != nil, k.keys != nil
}

// NotifyMCP implements [NotificationHandler].
func (k kept) NotifyMCP(ctx context.Context, n Notification) {
	if k.notices != nil {
		k.notices.NotifyMCP(ctx, n)
	}
}

// Vocabulary implements [Versed].
func (k kept) Vocabulary() *Vocabulary {
	if k.versed == nil {
		return nil
	}
	return k.versed.Vocabulary()
}
