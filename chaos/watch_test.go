//go:build linux

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/chaos/history"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// A watcher is a client that listens to all values of a server and to the list. After each notice
// it reads what has changed.
type watcher struct {
	*cluster
	name, path string
	values     *values

	mu   sync.Mutex
	seen map[string]int // the newest number by topic
}

func topics() (all []string) {
	all = append(all, listTopic)
	for n := range valueCount {
		all = append(all, valueURI(n))
	}
	return all
}

// note records the number that was found after a notice.
func (w *watcher) note(topic string, n int) {
	w.h.AddStep(topic, "notice", strconv.Itoa(n), w.name)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[topic] = max(w.seen[topic], n)
}

// hasAll reports whether the watcher knows the newest number of each topic.
func (w *watcher) hasAll() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for topic, n := range w.values.state() {
		if topic != listTopic && w.seen[topic] < n {
			return false
		}
	}
	return true
}

// begin records that a subscription was acknowledged. The returned function records its end.
func (w *watcher) begin() (end func(eventIDs []string)) {
	var all []*history.Op
	for _, topic := range topics() {
		all = append(all, w.h.Begin(&history.Op{Client: w.name, Kind: history.Listen, Got: topic}))
	}
	return func(eventIDs []string) {
		all[0].EventIDs = eventIDs
		for _, o := range all {
			w.h.End(o, history.OK)
		}
	}
}

// retry calls a function until it succeeds or ctx ends.
func retry(ctx context.Context, f func(context.Context) error) error {
	for {
		limit, cancel := context.WithTimeout(ctx, opLimit)
		err := f(limit)
		if cancel(); err == nil || ctx.Err() != nil {
			return err
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

var versionText = regexp.MustCompile(versionURI + `(\d+)`)

// watchModern listens as a client of 2026-07-28 until ctx ends.
func (w *watcher) watchModern(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.watchOnce(ctx); err != nil && ctx.Err() == nil {
			_ = wait(ctx, 50*time.Millisecond)
		}
	}
}

func (w *watcher) watchOnce(ctx context.Context) error {
	one, err := w.dialPath(ctx, w.path, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, everyToken)
	if err != nil {
		return err
	}
	defer one.Close()
	watch, err := one.Watch(ctx, mcp.SubscriptionFilter{ResourcesListChanged: true, ResourceSubscriptions: topics()[1:]})
	if err != nil {
		return err
	}
	defer w.begin()(nil)
	for change, err := range watch.Changes() {
		if err != nil {
			return err
		}
		switch {
		case change.Gap:
			for _, topic := range topics() {
				w.readModern(ctx, one, topic)
			}
		case change.Method == mcp.NotificationResourceUpdated:
			w.readModern(ctx, one, change.URI)
		case change.Method == mcp.NotificationResourcesChanged:
			w.readModern(ctx, one, listTopic)
		}
	}
	return nil
}

// readModern reads a topic and notes its number.
func (w *watcher) readModern(ctx context.Context, one *client.Client, topic string) {
	n := -1
	err := retry(ctx, func(ctx context.Context) error {
		if topic != listTopic {
			r, err := one.ReadResource(ctx, topic)
			if err != nil {
				return err
			}
			if len(r.Contents) != 1 {
				return fmt.Errorf("%d contents", len(r.Contents))
			}
			n, err = strconv.Atoi(r.Contents[0].Text)
			return err
		}
		for r, err := range one.Resources(ctx) {
			if err != nil {
				return err
			}
			if match := versionText.FindStringSubmatch(r.URI); match != nil {
				n, _ = strconv.Atoi(match[1])
			}
		}
		return nil
	})
	if err == nil {
		w.note(topic, n)
	}
}

// watchLegacy listens as a client of 2025-11-25 until ctx ends: it subscribes to each resource, and
// keeps the stream of its session open, over all replicas.
func (w *watcher) watchLegacy(ctx context.Context) {
	for ctx.Err() == nil {
		one := newLegacyClient(w.cluster, w.name, "http://"+w.front.address()+w.path, nil)
		one.token = everyToken
		if err := w.watchSession(ctx, one); err != nil && ctx.Err() == nil {
			_ = wait(ctx, 50*time.Millisecond)
		}
	}
}

// watchSession watches in one session.
func (w *watcher) watchSession(ctx context.Context, one *legacyClient) error {
	if err := one.open(ctx); err != nil {
		return err
	}
	defer func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), opLimit)
		defer cancel()
		_ = one.end(limit)
	}()
	for i, uri := range topics()[1:] {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":%q}}`, i+1, uri)
		if _, err := one.ask(ctx, body); err != nil {
			return err
		}
	}
	s := &legacyWatch{watcher: w, client: one, notices: make(chan string, 1<<16)}
	reading, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { s.readNoticed(reading) })
	defer func() { stop(); work.Wait() }()
	return s.listen(ctx)
}

// legacyWatch is the stream of a session.
type legacyWatch struct {
	*watcher
	client  *legacyClient
	notices chan string // topics
	last    string      // the id of the last event
	ids     []string

	onMessage func([]byte) // in place of take; may be nil
}

// listen keeps the stream open until the session is lost or ctx ends.
func (s *legacyWatch) listen(ctx context.Context) error {
	var end func([]string)
	defer func() {
		if end != nil {
			end(s.ids)
		}
	}()
	for {
		var fields []string
		if s.last != "" {
			fields = []string{"Last-Event-ID", s.last}
		}
		mark := newJob("get")
		resp, err := s.client.request(withMark(ctx, mark), "GET", "", fields...)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = refused(resp)
		}
		if isRefused(err) || ctx.Err() != nil {
			return err
		}
		if err == nil {
			if end == nil {
				end = s.begin()
			}
			s.h.AddStep(s.name, "connect", "after "+s.last, s.ownerOf(mark))
			s.readEvents(resp.Body)
			resp.Body.Close()
			s.h.AddStep(s.name, "disconnect", "after "+s.last, s.ownerOf(mark))
		}
		if wait(ctx, 50*time.Millisecond) != nil {
			return ctx.Err()
		}
	}
}

// readEvents reads events until the end of the connection.
func (s *legacyWatch) readEvents(body io.Reader) {
	id, lines := "", bufio.NewReader(body)
	var data []byte
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return // half an event does not count
		}
		switch name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); {
		case name == "id":
			id = strings.TrimSpace(value)
		case name == "data":
			data = append(data, strings.TrimSpace(value)...)
		case name == "" && value == "":
			if id != "" && (len(data) > 0 || id != s.last) {
				s.last, s.ids = id, append(s.ids, id)
			}
			if s.onMessage != nil {
				s.onMessage(data)
			} else {
				s.take(data)
			}
			id, data = "", nil
		}
	}
}

func (s *legacyWatch) take(data []byte) {
	var m struct {
		Method string
		Params struct{ URI string }
	}
	if json.Unmarshal(data, &m) != nil {
		return
	}
	switch m.Method {
	case mcp.NotificationResourceUpdated:
		s.notices <- m.Params.URI
	case mcp.NotificationResourcesChanged:
		s.notices <- listTopic
	}
}

// readNoticed reads each topic after its notice.
func (s *legacyWatch) readNoticed(ctx context.Context) {
	for id := 1000; ; id++ {
		select {
		case <-ctx.Done():
			return
		case topic := <-s.notices:
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":%q}}`, id, topic)
			if topic == listTopic {
				body = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/list"}`, id)
			}
			var text []byte
			if retry(ctx, func(ctx context.Context) (err error) { text, err = s.client.ask(ctx, body); return err }) != nil {
				return
			}
			match := numberText.FindSubmatch(text)
			if topic == listTopic {
				match = versionText.FindSubmatch(text)
			}
			if match != nil {
				n, _ := strconv.Atoi(string(match[1]))
				s.note(topic, n)
			}
		}
	}
}

var numberText = regexp.MustCompile(`"text":"(\d+)"`)

// ask sends a request that has a result and no events before it.
func (c *legacyClient) ask(ctx context.Context, body string) ([]byte, error) {
	resp, err := c.request(ctx, "POST", body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, refused(resp)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(text, []byte(`"result"`)) {
		return nil, errors.New(string(text))
	}
	return text, nil
}
