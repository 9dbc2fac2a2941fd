package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/audit"
)

// AuditTrail is the audit log as it is read: the file of the configuration, or else the newest
// records of this process in memory. Positions are bytes from its beginning. It is safe for
// concurrent use.
type AuditTrail struct {
	// Log writes records to the trail. Set it before the first use.
	Log *audit.Log

	mu      sync.Mutex
	path    string // "" without a file
	memory  []byte // whole lines; empty with a file
	start   int64  // position of memory
	size    int64  // of the file, as last seen
	changed chan struct{}
}

// Limits of a trail.
const (
	maxTrailMemory = 1 << 20
	maxTrailRead   = 512 << 10
)

// NewAuditTrail returns the trail of a file, or of this process if path is "".
func NewAuditTrail(path string) *AuditTrail {
	return &AuditTrail{path: path, changed: make(chan struct{})}
}

// Write implements [io.Writer] for one record. With a file the caller writes there first.
func (t *AuditTrail) Write(line []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.path == "" {
		if len(t.memory)+len(line) > maxTrailMemory {
			t.dropOldHalf()
		}
		t.memory = append(t.memory, line...)
	}
	t.wakeReaders()
	return len(line), nil
}

// dropOldHalf drops the older half of the lines in memory, so that few writes copy the rest.
// Readers may hold the old array. t.mu is held.
func (t *AuditTrail) dropOldHalf() {
	over := max(len(t.memory)-maxTrailMemory/2, 0)
	cut := over + bytes.IndexByte(t.memory[over:], '\n') + 1 // a longer line leaves none
	t.start += int64(cut)
	t.memory = append(make([]byte, 0, maxTrailMemory), t.memory[cut:]...)
}

// wakeReaders wakes the readers. t.mu is held.
func (t *AuditTrail) wakeReaders() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// state returns the size, and a channel that is closed when there is more. A nil trail never has
// more.
func (t *AuditTrail) state() (size int64, changed <-chan struct{}) {
	if t == nil {
		return 0, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.start + int64(len(t.memory)) + t.size, t.changed
}

// poll looks whether another process has written to the file.
func (t *AuditTrail) poll() {
	if t == nil || t.path == "" {
		return
	}
	info, err := os.Stat(t.path)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && info.Size() != t.size {
		t.size = info.Size()
		t.wakeReaders()
	}
}

// AuditLine is a record with its position in the trail.
type AuditLine struct {
	At int64 `json:"at"`
	audit.Record
}

// AuditPage is a part of the trail.
type AuditPage struct {
	File    string      `json:"file,omitzero"` // "" if it is only in memory
	Records []AuditLine `json:"records"`
	// Next is the position behind the records.
	Next int64 `json:"next"`
	// IsCut: there are older records, or the trail has begun anew, so that the records do not
	// follow the position that was asked for.
	IsCut bool `json:"isCut,omitzero"`
}

// Read returns the records from a position on. 0 means the newest.
func (t *AuditTrail) Read(after int64) (AuditPage, error) {
	page := AuditPage{File: t.path, Records: []AuditLine{}}
	data, from, err := t.bytesAfter(after)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return page, err
	}
	page.IsCut, page.Next = from > 0 && from != after || after > from, from
	for {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			return page, nil
		}
		line := AuditLine{At: page.Next}
		if json.Unmarshal(data[:end], &line.Record) == nil && line.Method != "" {
			page.Records = append(page.Records, line)
		}
		page.Next += int64(end) + 1
		data = data[end+1:]
	}
}

// bytesAfter returns whole lines and their position.
func (t *AuditTrail) bytesAfter(after int64) (data []byte, from int64, err error) {
	var source io.ReaderAt
	t.mu.Lock()
	base, size, memory := t.start, t.start+int64(len(t.memory)), t.memory
	t.mu.Unlock()
	if t.path == "" {
		source = bytes.NewReader(memory)
	} else {
		file, err := os.Open(t.path)
		if err != nil {
			return nil, 0, err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return nil, 0, err
		}
		source, base, size = file, 0, info.Size()
	}
	from = after
	if after == 0 || after > size || after < base {
		from = max(base, size-maxTrailRead)
	}
	data = make([]byte, min(size-from, maxTrailRead))
	if _, err := source.ReadAt(data, from-base); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	if from > base && from != after { // begins within a line
		cut := bytes.IndexByte(data, '\n') + 1
		return data[cut:], from + int64(cut), nil
	}
	return data, from, nil
}

func (d Running) serveAudit(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64) // 0 if it is missing
	page, err := d.Audit.Read(after)
	writeResult(w, page, err)
}

// record writes an action of the user to the audit log, and returns its error.
func (d Running) record(method, server, name string, err error) error {
	if d.Audit == nil || d.Audit.Log == nil {
		return err
	}
	r := audit.Record{Time: time.Now(), Client: d.door, Method: method, Server: server, Name: name, Outcome: "ok", By: "user"}
	if r.Client == "" {
		r.Client = "command"
	}
	if err != nil {
		r.Outcome, r.Error = "error", err.Error()
	}
	d.Audit.Log.Write(r)
	return err
}

// acceptRequest accepts definitions of a server as they were shown.
type acceptRequest struct {
	Digests []string `json:"digests"`
}

// serveAccept accepts changed definitions. It accepts only the changes that the user has seen.
func (d Running) serveAccept(w http.ResponseWriter, r *http.Request) {
	var request acceptRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		writeOutcome(w, err)
		return
	}
	u := d.Hub.Upstream(r.PathValue("name"))
	if u == nil {
		writeOutcome(w, ErrNoServer)
		return
	}
	changes := slices.DeleteFunc(u.ChangedDefinitions(), func(c client.DefinitionChange) bool { return !slices.Contains(request.Digests, c.Digest) })
	if len(changes) == 0 {
		writeOutcome(w, errors.New("these definitions have changed again, or are accepted already: look at the server again"))
		return
	}
	names := make([]string, 0, len(changes))
	for _, c := range changes {
		names = append(names, strings.TrimSpace(c.Kind+" "+c.Name))
	}
	err := AcceptDefinitions(u, changes...)
	writeOutcome(w, d.record("definitions/accept", u.Name(), strings.Join(names, ", "), err))
}

// AcceptDefinitions accepts changed definitions of a server, and offers at once what was held back.
func AcceptDefinitions(u *hub.Upstream, changes ...client.DefinitionChange) error {
	err := client.AcceptDefinitions(u.Definition().Log, changes...)
	u.ChangedDefinitions()
	return err
}

// AcceptDefinitions accepts changed definitions of a server as they were shown. The running dowel
// keeps them, possibly with its replicas.
func (c *Client) AcceptDefinitions(ctx context.Context, server string, changes ...client.DefinitionChange) error {
	var request acceptRequest
	for _, change := range changes {
		request.Digests = append(request.Digests, change.Digest)
	}
	return c.post(ctx, callTimeout, "/v1/servers/"+url.PathEscape(server)+"/accept", request)
}
