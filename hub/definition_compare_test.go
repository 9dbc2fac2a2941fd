package hub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/hublink"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// toolServer returns a server with one tool, env, that has a description.
func toolServer(t *testing.T, description string) *server.Server {
	t.Helper()
	s := server.New("s", "1", nil)
	server.RawTool(s, mcp.Tool{Name: "env", Description: description, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{}, nil
	})
	t.Cleanup(func() { s.Close() })
	return s
}

// sharedLog is a log of several processes, which tells them of each change.
type sharedLog struct {
	memoryLog
	writes atomic.Int32
	tell   chan struct{}
}

func (l *sharedLog) Update(change func([]byte) []byte) error {
	return l.memoryLog.Update(func(old []byte) []byte {
		next := change(old)
		if !bytes.Equal(old, next) {
			l.writes.Add(1)
			l.tell <- struct{}{}
		}
		return next
	})
}

// Two processes with different definitions of a server do not write them in turn: a process that
// learns of a change only compares. A definition that one process accepts, the other offers.
func TestSharedLogIsQuiet(t *testing.T) {
	t.Parallel()
	log := &sharedLog{tell: make(chan struct{}, 1000)}
	h := start(t, hub.Options{}, hub.Definition{Name: "s", Target: toolServer(t, "accepted"), Log: log})
	settled(t, h)
	var all []*hub.Upstream
	for _, text := range []string{"one", "two"} {
		h := start(t, hub.Options{}, hub.Definition{Name: "s", Target: toolServer(t, text), Log: log, HoldChanged: "accept it"})
		settled(t, h)
		all = append(all, h.Upstream("s"))
	}
	compare := func() {
		for n := 0; len(log.tell) > 0; n++ {
			if n == 20 {
				t.Fatalf("%d writes, and they go on", log.writes.Load())
			}
			for len(log.tell) > 0 {
				<-log.tell
			}
			for _, u := range all {
				hublink.CompareDefinitions(u)
				u.ChangedDefinitions()
			}
		}
	}
	compare()
	began := log.writes.Load()
	for range 3 {
		log.tell <- struct{}{}
		compare()
	}
	if n := log.writes.Load(); n != began {
		t.Errorf("%d writes without a change", n-began)
	}
	if err := client.AcceptDefinitions(log, all[1].ChangedDefinitions()...); err != nil {
		t.Fatal(err)
	}
	compare()
	if all[0].Quarantined() == nil || all[1].Quarantined() != nil {
		t.Errorf("after one was accepted: %v and %v", all[0].Quarantined(), all[1].Quarantined())
	}
}

// gateLog is a log that waits while it is shut, and fails while it is broken.
type gateLog struct {
	memoryLog
	gate   sync.RWMutex
	asked  chan struct{} // has room for one
	broken atomic.Bool
}

func (l *gateLog) Update(change func([]byte) []byte) error {
	select {
	case l.asked <- struct{}{}:
	default:
	}
	l.gate.RLock()
	defer l.gate.RUnlock()
	if l.broken.Load() {
		return errors.New("the log is broken")
	}
	return l.memoryLog.Update(change)
}

// While a log does not answer, the hub and its servers serve requests, also during Apply.
func TestSlowLogStopsNoRequest(t *testing.T) {
	t.Parallel()
	log := &gateLog{asked: make(chan struct{}, 1)}
	d := hub.Definition{Name: "s", Target: toolServer(t, "one"), Log: log, HoldChanged: "accept it"}
	h := start(t, hub.Options{}, d)
	settled(t, h)
	log.gate.Lock()
	for len(log.asked) > 0 {
		<-log.asked
	}
	applied := make(chan struct{})
	go func() {
		defer close(applied)
		h.Apply([]hub.Definition{d, {Name: "t", Target: toolServer(t, "two"), Log: log}}, "a reload")
	}()
	<-log.asked
	served := make(chan error, 1)
	go func() {
		u := h.Upstreams()[0]
		_, err := u.RoundTrip(t.Context(), hub.Caller{}, &mcp.Request{Method: mcp.MethodCallTool, Params: json.RawMessage(`{"name":"env","arguments":{}}`)})
		if len(h.Catalog().Items(catalog.Tool)) != 1 {
			err = errors.New("the tool is not offered")
		}
		served <- err
	}()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("a request waits for the log")
	}
	log.gate.Unlock()
	<-applied
	if len(h.Upstreams()) != 2 {
		t.Error("the definitions are not applied")
	}
	settled(t, h)
}

// Definitions that could not be recorded are recorded as soon as the log works.
func TestFailedObservationIsTriedAgain(t *testing.T) {
	t.Parallel()
	log := &gateLog{asked: make(chan struct{}, 1)}
	log.broken.Store(true)
	h := start(t, hub.Options{}, hub.Definition{Name: "s", Target: toolServer(t, "one"), Log: log, HoldChanged: "accept it"})
	settled(t, h)
	isOffered := func() bool { return slices.Contains(wires(h.Catalog().Items(catalog.Tool)), "s__env") }
	if isOffered() {
		t.Error("an unknown definition is offered without a record")
	}
	log.broken.Store(false)
	until(t, "the tool is offered", isOffered)
}
