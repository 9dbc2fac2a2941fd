package cluster

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/replica"
)

// DefinitionPrefix begins the keys of definitions among the values.
const DefinitionPrefix = "definitions"

// definitionLog is the log of a server's definitions for all replicas. A definition that one
// replica has accepted is accepted at all.
type definitionLog struct {
	cluster *Cluster
	key     string
	local   client.DefinitionLog // of this machine, where the log begins; nil without one

	mu   sync.Mutex
	last []byte // the newest record that was seen, never nil then; guarded by mu
}

// Definitions returns the log of a server's definitions for all replicas. It begins with the
// log of this machine, local, which may be nil. It is the same log each time, so what was seen
// last is kept.
func (c *Cluster) Definitions(file, server string, local client.DefinitionLog) client.DefinitionLog {
	key := replica.KeyOf(DefinitionPrefix, file+"\x00"+server)
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.definitions[key]
	if l == nil {
		if c.definitions == nil {
			c.definitions = map[string]*definitionLog{}
		}
		l = &definitionLog{cluster: c, key: key, local: local}
		c.definitions[key] = l
	}
	return l
}

// HasDefinitions reports whether [replica.Values] keep a log under a key.
func HasDefinitions(key string, log client.DefinitionLog) bool {
	l, ok := log.(*definitionLog)
	return ok && l.key == key
}

// keepLast remembers the newest record.
func (l *definitionLog) keepLast(record []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = append([]byte{}, record...)
}

// lastSeen returns a copy of the newest record, or nil if none was seen.
func (l *definitionLog) lastSeen() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.last)
}

// Update implements [client.DefinitionLog]. While the cluster cannot be reached, change gets the
// record that was seen last, and its result is not stored.
func (l *definitionLog) Update(change func(record []byte) []byte) error {
	ctx, cancel := context.WithTimeout(l.cluster.ctx, 2*storeTimeout)
	defer cancel()
	for {
		stored, version, err := l.cluster.values.Get(ctx, l.key)
		if err != nil {
			if last := l.lastSeen(); last != nil {
				change(last)
			}
			return fmt.Errorf("the definitions cannot be kept: %w", err)
		}
		record, err := unzip(stored)
		if err != nil {
			return fmt.Errorf("the definitions in the cluster cannot be read: %w", err)
		}
		known := bytes.Clone(record)
		if stored == nil && l.local != nil {
			err := l.local.Update(func(own []byte) []byte { record = bytes.Clone(own); return own })
			if err != nil {
				l.cluster.opts.Logger.Warn("the definitions of this machine are not taken over", "err", err)
			}
		}
		next := change(record)
		if bytes.Equal(next, known) {
			l.keepLast(known)
			return nil
		}
		switch _, err = l.cluster.values.Put(ctx, l.key, zip(next), version, 0); {
		case err == nil:
			l.keepLast(next)
			return nil
		case !errors.Is(err, replica.ErrStale):
			return fmt.Errorf("the definitions cannot be kept: %w", err)
		}
	}
}

// zip compresses a record, because it may be larger than a message.
func zip(record []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(record) // to memory
	_ = w.Close()
	return out.Bytes()
}

func unzip(value []byte) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxRecord))
}

// maxRecord bounds the record of a server's definitions in bytes, which is about 5 MiB at most.
const maxRecord = 32 << 20
