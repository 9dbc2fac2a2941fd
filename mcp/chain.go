package mcp

import "context"

// Keyed is a [Handler] that has keys, such as a server. A transport that needs keys uses them.
type Keyed interface {
	Keys() *Keys
}

// Versed is a [Handler] that understands extensions, such as a server. A transport uses its
// vocabulary. Vocabulary may return nil.
type Versed interface {
	Vocabulary() *Vocabulary
}

// keepInterfaces returns outer, extended by the optional interfaces that only inner implements.
func keepInterfaces(outer, inner Handler) Handler {
	k := interfaceKeeper{Handler: outer}
	hears, knows, keys := k.addFrom(outer)
	heard, known, keyed := k.addFrom(inner)
	if hears == heard && knows == known && keys == keyed {
		return outer
	}
	if k.keys != nil {
		return struct {
			interfaceKeeper
			Keyed
		}{k, k.keys}
	}
	return k
}

// interfaceKeeper is a Handler with the optional interfaces of the handlers inside it.
type interfaceKeeper struct {
	Handler
	notices NotificationHandler
	versed  Versed
	keys    Keyed
}

// addFrom adds the interfaces of h that k lacks, and reports the interfaces that k then has.
func (k *interfaceKeeper) addFrom(h Handler) (notices, versed, keys bool) {
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
func (k interfaceKeeper) NotifyMCP(ctx context.Context, n Notification) {
	if k.notices != nil {
		k.notices.NotifyMCP(ctx, n)
	}
}

// Vocabulary implements [Versed].
func (k interfaceKeeper) Vocabulary() *Vocabulary {
	if k.versed == nil {
		return nil
	}
	return k.versed.Vocabulary()
}
