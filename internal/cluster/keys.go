package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/nats-io/nats.go/jetstream"
)

// keyRecord is the entry of the shared keys. Changes are decided by compare-and-set on its
// revision. A rotation has three steps: a new secret is accepted by all replicas, then it seals,
// and the old one is retired after [Options.KeyLife].
type keyRecord struct {
	Current  sharedSecret   `json:"current"` // seals
	Next     *sharedSecret  `json:"next,omitempty"`
	Old      []sharedSecret `json:"old,omitempty"` // newest first
	revision uint64
}

type sharedSecret struct {
	Secret []byte    `json:"secret"`
	Since  time.Time `json:"since"` // when it was created, or ceased to seal
}

// String describes the keys for the user.
func (r *keyRecord) String() string {
	switch {
	case r.revision == 0:
		return "unknown"
	case r.Next != nil:
		return "a new key waits until every replica accepts it"
	case len(r.Old) > 0:
		return fmt.Sprintf("sealing since %s; %d older accepted", r.Current.Since.Format(time.DateTime), len(r.Old))
	}
	return "sealing since " + r.Current.Since.Format(time.DateTime)
}

// secrets returns the secrets in the order of [mcp.NewKeys].
func (r *keyRecord) secrets() [][]byte {
	all := [][]byte{r.Current.Secret}
	if r.Next != nil {
		all = append(all, r.Next.Secret)
	}
	for _, old := range r.Old {
		all = append(all, old.Secret)
	}
	return all
}

const keysEntry = "keys"

func newSecret() sharedSecret {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails (crypto/rand)
	return sharedSecret{secret, time.Now().UTC().Truncate(time.Second)}
}

// joinKeys takes over the shared keys, which it creates if there are none, and begins to follow
// their changes.
func (c *Cluster) joinKeys(ctx context.Context) error {
	get := func(ctx context.Context) (jetstream.KeyValueEntry, error) { return c.state.Get(ctx, keysEntry) }
	entry, err := tryAgain(ctx, c, openTry, get)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		data, _ := json.Marshal(keyRecord{Current: newSecret()}) // plain data
		_, err = tryAgain(ctx, c, openTry, func(ctx context.Context) (uint64, error) { return c.state.Create(ctx, keysEntry, data) })
		if err != nil && !errors.Is(err, jetstream.ErrKeyExists) { // which another replica, or the try before, has created
			return err
		}
		entry, err = tryAgain(ctx, c, openTry, get)
	}
	if err != nil {
		return err
	}
	if err := c.applyKeys(entry.Value(), entry.Revision()); err != nil {
		return err
	}
	watch, err := tryAgain(ctx, c, openTry, func(context.Context) (jetstream.KeyWatcher, error) { return c.state.WatchAll(c.ctx) }) // it waits for at most five seconds
	if err != nil {
		return err
	}
	_, err = tryAgain(ctx, c, openTry, func(ctx context.Context) (struct{}, error) { return struct{}{}, c.renewLease(ctx) })
	if err != nil {
		_ = watch.Stop()
		return err
	}
	c.running.Go(func() { c.follow(watch) })
	return nil
}

// applyKeys applies the keys of a record, unless a newer record was applied.
func (c *Cluster) applyKeys(data []byte, revision uint64) error {
	var r keyRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return fmt.Errorf("the shared keys cannot be read: %w", err)
	}
	r.revision = revision
	c.mu.Lock()
	defer c.mu.Unlock()
	if revision <= c.record.revision {
		return nil
	}
	if err := c.keys.Replace(r.secrets()...); err != nil {
		return fmt.Errorf("the shared keys cannot be used: %w", err)
	}
	c.record = r
	return nil
}

// RotateKeys begins to exchange the secret that seals. It returns when the new secret is stored;
// the replicas do the rest, within seconds if all of them are there. It fails while another
// exchange has not ended.
func (c *Cluster) RotateKeys(ctx context.Context) error {
	if err := c.checkConnected(); err != nil {
		return err
	}
	r := c.keysSeen()
	if r.Next != nil {
		return errors.New("the keys are being exchanged already: wait until every replica accepts the new one")
	}
	next := newSecret()
	r.Next = &next
	err := c.saveKeys(ctx, r)
	if errors.Is(err, jetstream.ErrKeyExists) {
		return errors.New("another replica has changed the keys at the same time: try again")
	}
	return storeError(err)
}

func (c *Cluster) keysSeen() keyRecord {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.record
	r.Old = slices.Clone(r.Old)
	return r
}

// saveKeys replaces the record if nothing else has since it was seen.
func (c *Cluster) saveKeys(ctx context.Context, r keyRecord) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	revision, err := c.state.Update(ctx, keysEntry, data, r.revision)
	if err != nil {
		return err
	}
	return c.applyKeys(data, revision)
}

// advanceKeys does the next step of a rotation, if it is due. Every replica tries; the first one
// succeeds.
func (c *Cluster) advanceKeys(ctx context.Context) error {
	r := c.keysSeen()
	switch {
	case r.Next != nil && c.allHaveSeen(r.revision):
		former := r.Current
		former.Since = time.Now().UTC().Truncate(time.Second)
		r.Current, r.Next = *r.Next, nil
		r.Old = slices.Insert(r.Old, 0, former)
	case r.Next == nil && slices.ContainsFunc(r.Old, c.isRetired):
		r.Old = slices.DeleteFunc(r.Old, c.isRetired)
	default:
		return nil
	}
	err := c.saveKeys(ctx, r)
	if errors.Is(err, jetstream.ErrKeyExists) {
		return nil // another replica was faster
	}
	return err
}

func (c *Cluster) isRetired(s sharedSecret) bool { return time.Since(s.Since) > c.opts.KeyLife }

var _ replica.Network = (*Cluster)(nil)
