package kv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/userdir"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// lockWait is the time to wait for a file that another process has open. It is long enough for a
// process that is just ending.
const lockWait = time.Second

// sweepBatch is the number of pairs that one transaction removes.
const sweepBatch = 1000

// The buckets of the file. In values, the key of a pair leads to its expiry and value (appendPair).
// In expiries, each pair that expires has an entry whose key is the time followed by the key of the
// pair (expiryKey), so the next pair to expire is first.
var (
	valuesBucket   = []byte("values")
	expiriesBucket = []byte("expiries")
)

// Bolt opens the store in the file at path. It creates the file and its folders if they are
// missing. Only one process can have the file open; if another one does, Bolt fails after a second.
func Bolt(path string) (Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("kv: cannot create the folder of the data file: %w", err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockWait})
	if err != nil {
		return nil, openError(path, err)
	}
	b := &boltStore{db: db}
	if err := b.createBuckets(); err != nil {
		db.Close()
		return nil, openError(path, err)
	}
	b.sweeper = startSweeper(b.removeExpired)
	return b, nil
}

func openError(path string, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("kv: %s is open in another process: end that process, use another file (path=…), or let both share a Redis (redis=redis://…)", path)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		return fmt.Errorf("kv: %s is not a data file of this server, or is damaged: move it away or use another file (path=…): %w", path, err)
	}
	return fmt.Errorf("kv: cannot open the data file %s: %w", path, err)
}

type boltStore struct {
	watcher
	db      *bolt.DB
	sweeper *sweeper
	writing sync.Mutex // held through a write and its report, so that reports come in the order of the writes
}

func (b *boltStore) createBuckets() error {
	return b.db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(valuesBucket)
		if err == nil {
			_, err = tx.CreateBucketIfNotExists(expiriesBucket)
		}
		return err
	})
}

func (b *boltStore) Get(_ context.Context, key string) (value string, err error) {
	err = b.db.View(func(tx *bolt.Tx) error {
		p, ok := readPair(tx.Bucket(valuesBucket).Get([]byte(key)))
		if !ok || p.isExpired(time.Now()) {
			return fs.ErrNotExist
		}
		value = p.value
		return nil
	})
	return value, err
}

func (b *boltStore) Set(_ context.Context, key, value string, ttl time.Duration) (created bool, err error) {
	p := pair{value: value}
	if ttl > 0 {
		p.expires = time.Now().Add(ttl)
		defer b.sweeper.wakeUp()
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	err = b.db.Update(func(tx *bolt.Tx) error {
		old, ok, err := takePair(tx, key)
		if err != nil {
			return err
		}
		created = !ok || old.isExpired(time.Now())
		return putPair(tx, key, p)
	})
	if err != nil {
		return false, fmt.Errorf("storing %q failed: %w", key, err)
	}
	b.reportChanges(changeOfSet(created), key)
	return created, nil
}

func (b *boltStore) Delete(_ context.Context, key string) (existed bool, err error) {
	var found bool
	b.writing.Lock()
	defer b.writing.Unlock()
	err = b.db.Update(func(tx *bolt.Tx) error {
		old, ok, err := takePair(tx, key)
		found, existed = ok, ok && !old.isExpired(time.Now())
		return err
	})
	if err != nil {
		return false, fmt.Errorf("deleting %q failed: %w", key, err)
	}
	if found {
		b.reportChanges(Removed, key)
	}
	return existed, nil
}

func (b *boltStore) Keys(_ context.Context, prefix, after string, limit int) (keys []string, err error) {
	now := time.Now()
	err = b.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(valuesBucket).Cursor()
		k, v := c.Seek([]byte(max(prefix, after)))
		for ; k != nil && len(keys) < limit && bytes.HasPrefix(k, []byte(prefix)); k, v = c.Next() {
			if p, ok := readPair(v); ok && string(k) != after && !p.isExpired(now) {
				keys = append(keys, string(k))
			}
		}
		return nil
	})
	return keys, err
}

func (b *boltStore) Watch(f func(Change)) error {
	b.setCallback(f)
	return nil
}

func (b *boltStore) Close() error {
	b.sweeper.stopSweeper()
	b.setCallback(nil)
	return b.db.Close()
}

// removeExpired removes expired pairs, in several transactions if they are many.
func (b *boltStore) removeExpired() (next time.Time, err error) {
	for {
		due, next, err := b.findExpired(time.Now())
		if err != nil || len(due) == 0 {
			return next, err
		}
		if err := b.removeEntries(due); err != nil {
			return time.Time{}, err
		}
	}
}

// findExpired returns the entries of pairs that have expired, and the time of the next expiry.
func (b *boltStore) findExpired(now time.Time) (entries [][]byte, next time.Time, err error) {
	err = b.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(expiriesBucket).Cursor()
		for k, _ := c.First(); k != nil && len(entries) < sweepBatch; k, _ = c.Next() {
			if at, _ := splitExpiryKey(k); now.Before(at) {
				next = at
				return nil
			}
			entries = append(entries, bytes.Clone(k))
		}
		return nil
	})
	return entries, next, err
}

// removeEntries removes entries of expiries and their pairs. A pair that has been set again
// meanwhile has another entry, and stays.
func (b *boltStore) removeEntries(entries [][]byte) error {
	var removed []string
	b.writing.Lock()
	defer b.writing.Unlock()
	err := b.db.Update(func(tx *bolt.Tx) error {
		values, expiries := tx.Bucket(valuesBucket), tx.Bucket(expiriesBucket)
		for _, entry := range entries {
			if err := expiries.Delete(entry); err != nil {
				return err
			}
			at, key := splitExpiryKey(entry)
			if p, ok := readPair(values.Get([]byte(key))); !ok || !p.expires.Equal(at) {
				continue
			}
			if err := values.Delete([]byte(key)); err != nil {
				return err
			}
			removed = append(removed, key)
		}
		return nil
	})
	if err == nil {
		b.reportChanges(Removed, removed...)
	}
	return err
}

// takePair removes a pair from both buckets and returns it.
func takePair(tx *bolt.Tx, key string) (old pair, ok bool, err error) {
	values := tx.Bucket(valuesBucket)
	if old, ok = readPair(values.Get([]byte(key))); !ok {
		return old, false, nil
	}
	if !old.expires.IsZero() {
		err = tx.Bucket(expiriesBucket).Delete(expiryKey(old.expires, key))
	}
	if err == nil {
		err = values.Delete([]byte(key))
	}
	return old, true, err
}

func putPair(tx *bolt.Tx, key string, p pair) error {
	if err := tx.Bucket(valuesBucket).Put([]byte(key), appendPair(nil, p)); err != nil || p.expires.IsZero() {
		return err
	}
	return tx.Bucket(expiriesBucket).Put(expiryKey(p.expires, key), nil)
}

func expiryKey(at time.Time, key string) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli())), key...)
}

func splitExpiryKey(entry []byte) (at time.Time, key string) {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(entry))), string(entry[8:])
}

// appendPair appends the expiry, in milliseconds since 1970 or 0 for none, and the value.
func appendPair(dst []byte, p pair) []byte {
	at := uint64(0)
	if !p.expires.IsZero() {
		at = uint64(p.expires.UnixMilli())
	}
	return append(binary.BigEndian.AppendUint64(dst, at), p.value...)
}

func readPair(raw []byte) (p pair, ok bool) {
	if len(raw) < 8 {
		return p, false
	}
	if at := binary.BigEndian.Uint64(raw); at != 0 {
		p.expires = time.UnixMilli(int64(at))
	}
	p.value = string(raw[8:])
	return p, true
}

// DefaultPath returns the path of the default store: dowel/kv.db in the user's data folder, see
// [userdir.Data].
func DefaultPath() (string, error) {
	folder, err := userdir.Data()
	if err != nil {
		return "", fmt.Errorf("kv: cannot find your data folder: set XDG_DATA_HOME or give a file (path=…): %w", err)
	}
	return filepath.Join(folder, "dowel", "kv.db"), nil
}
