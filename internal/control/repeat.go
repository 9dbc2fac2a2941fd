package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/journal/export"
	"github.com/dowel-mcp/dowel/internal/journal/filter"
	"github.com/dowel-mcp/dowel/internal/linediff"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/version"
)

// recordedOperation is an operation that the journal has, with its frames. It may lack the first
// ones.
type recordedOperation struct {
	state  *journal.Operation // nil if the journal has frames only
	frames []*journal.Frame
}

// findOperation returns an operation of the journal by the text of its number.
func (d Running) findOperation(ctx context.Context, number string) (recordedOperation, error) {
	var o recordedOperation
	id, err := strconv.ParseUint(number, 10, 64)
	if err != nil || id == 0 {
		return o, errors.New("want the number of an operation")
	}
	for record := range d.kept(ctx, id) {
		switch {
		case record.Frame != nil && record.Frame.Operation == id && len(o.frames) < maxDetailFrames:
			o.frames = append(o.frames, record.Frame)
		case record.Operation != nil && record.Operation.ID == id:
			o.state = record.Operation
		}
	}
	if o.state == nil {
		return o, errNotKept
	}
	return o, nil
}

// RepeatableCall is a recorded call in the forms in which it can be repeated.
type RepeatableCall struct {
	ItemName
	Arguments string `json:"arguments"` // JSON
	// As has the call as a command for curl and for dowel, and as a Go test.
	As map[string]string `json:"as"`
	// Obstacle says why the console cannot call it: its server or tool is gone.
	Obstacle string `json:"obstacle,omitzero"`
}

// repeatable returns the call of an operation.
func (d Running) repeatable(o recordedOperation) (RepeatableCall, error) {
	arguments, err := export.Arguments(o.state, o.frames)
	if err != nil {
		return RepeatableCall{}, err
	}
	call := RepeatableCall{ItemName{o.state.Server, "tool", export.LocalName(o.state, o.frames)}, arguments, map[string]string{}, ""}
	for _, item := range d.Hub.Catalog().Items(catalog.Tool) {
		if item.WireName == o.state.Name {
			call.ItemName = nameOf(item)
		}
	}
	for _, form := range export.CommandNames {
		call.As[form], _ = export.Command(form, o.state, o.frames) // its arguments are known
	}
	if _, err := findItem(d.Hub, call.ItemName); err != nil {
		call.Obstacle = err.Error()
	}
	return call, nil
}

func (d Running) serveRepeatable(w http.ResponseWriter, r *http.Request) {
	o, err := d.findOperation(r.Context(), r.PathValue("id"))
	if err != nil {
		writeOutcome(w, err)
		return
	}
	call, err := d.repeatable(o)
	writeResult(w, call, err)
}

// serveExport answers with the kept messages that ?filter accepts, as ?format jsonl or har.
func (d Running) serveExport(w http.ResponseWriter, r *http.Request) {
	accept, err := filter.Parse(r.URL.Query().Get("filter"), time.Now())
	if err != nil {
		writeOutcome(w, err)
		return
	}
	switch format := r.URL.Query().Get("format"); format {
	case "jsonl":
		d.exportLines(w, r, accept)
	case "har":
		d.exportArchive(w, r, accept)
	default:
		writeOutcome(w, errors.New("want the format jsonl or har"))
	}
}

// exportLines writes a recording that dowel wire can read: the accepted frames, and the last state
// of each accepted operation.
func (d Running) exportLines(w http.ResponseWriter, r *http.Request, accept filter.Filter) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	_ = out.Encode(d.Recorder.BootLine(version.Number())) // a page that is gone needs no file
	operations := d.keptOperations(r.Context())
	for record := range d.kept(r.Context(), 1) {
		switch {
		case record.Frame != nil:
			o := operations[record.Frame.Operation]
			if !accept.Match(filter.Item{Frame: record.Frame, Operation: o.state}) {
				continue
			}
		case !accept.MatchOperation(operations[record.Operation.ID].state, operations[record.Operation.ID].frames):
			continue
		}
		if out.Encode(journal.LineOf(record)) != nil {
			return
		}
	}
}

func (d Running) exportArchive(w http.ResponseWriter, r *http.Request, accept filter.Filter) {
	var archive export.Archive
	for _, o := range d.keptOperations(r.Context()) {
		if o.state != nil && accept.MatchOperation(o.state, o.frames) {
			archive.Add(o.state, o.frames)
		}
	}
	writeJSON(w, archive.Document())
}

// keptOperations returns the operations that the journal has.
func (d Running) keptOperations(ctx context.Context) map[uint64]recordedOperation {
	all := map[uint64]recordedOperation{}
	for record := range d.kept(ctx, 1) {
		if f := record.Frame; f != nil {
			if o := all[f.Operation]; f.Operation != 0 && len(o.frames) < maxDetailFrames {
				o.frames = append(o.frames, f)
				all[f.Operation] = o
			}
			continue
		}
		o := all[record.Operation.ID]
		o.state = record.Operation
		all[record.Operation.ID] = o
	}
	return all
}

// Comparison is the difference of two operations.
type Comparison struct {
	Facts     []ComparedFact `json:"facts"`
	Arguments []string       `json:"arguments"` // lines that begin with + or -, or with a space for a common one
	Result    []string       `json:"result"`
}

// ComparedFact is a property of two operations.
type ComparedFact struct {
	Name   string `json:"name"`
	A      string `json:"a"`
	B      string `json:"b"`
	Differ bool   `json:"differ,omitzero"`
}

// Compare returns the difference of two operations of the running dowel.
func (c *Client) Compare(ctx context.Context, a, b uint) (comparison Comparison, err error) {
	err = c.call(ctx, http.MethodGet, fmt.Sprintf("/v1/compare?a=%d&b=%d", a, b), &comparison)
	return comparison, err
}

func (d Running) serveComparison(w http.ResponseWriter, r *http.Request) {
	a, err := d.findOperation(r.Context(), r.URL.Query().Get("a"))
	if err != nil {
		writeOutcome(w, err)
		return
	}
	b, err := d.findOperation(r.Context(), r.URL.Query().Get("b"))
	if err != nil {
		writeOutcome(w, err)
		return
	}
	writeJSON(w, compareOperations(a, b))
}

// compareOperations returns the difference of two operations.
func compareOperations(a, b recordedOperation) Comparison {
	c := Comparison{Arguments: diffJSON(requestOf(a), requestOf(b)), Result: diffJSON(resultOf(a), resultOf(b))}
	for _, fact := range []struct {
		name string
		of   func(o recordedOperation) string
	}{
		{"Method", func(o recordedOperation) string { return o.state.Method }},
		{"Name", func(o recordedOperation) string { return o.state.Name }},
		{"Client", func(o recordedOperation) string { return o.state.Client }},
		{"Server", func(o recordedOperation) string { return o.state.Server }},
		{"Revision", func(o recordedOperation) string { return clientRevision(o.frames) }},
		{"Status", func(o recordedOperation) string { return cmp.Or(string(o.state.Status), "pending") }},
		{"Error", func(o recordedOperation) string { return o.state.Error }},
		{"Took", func(o recordedOperation) string { return o.state.Took().Round(time.Microsecond).String() }},
		{"Messages", func(o recordedOperation) string { return strconv.Itoa(len(o.frames)) }},
	} {
		left, right := fact.of(a), fact.of(b)
		if left != "" || right != "" {
			c.Facts = append(c.Facts, ComparedFact{fact.name, left, right, left != right})
		}
	}
	return c
}

// clientRevision returns the revision that the client of a call speaks.
func clientRevision(frames []*journal.Frame) string {
	for _, f := range frames {
		if f.Leg == journal.ClientLeg && f.Revision != "" {
			return string(f.Revision)
		}
	}
	return ""
}

// requestOf returns the parameters of an operation as its client sent them, without _meta.
func requestOf(o recordedOperation) []byte {
	for _, f := range o.frames {
		if f.Kind == journal.Request && rawjson.CheckAll(f.Body) == nil {
			members, _ := rawjson.AppendMembers([]byte("{"), rawjson.Lookup(f.Body, "params"), func(key []byte) bool { return string(key) == "_meta" })
			return append(members, '}')
		}
	}
	return nil
}

// resultOf returns the result or the error that the client of an operation got.
func resultOf(o recordedOperation) []byte {
	for _, f := range slices.Backward(o.frames) {
		if f.Kind != journal.Response || f.Leg != o.frames[0].Leg || rawjson.CheckAll(f.Body) != nil {
			continue
		}
		if result := rawjson.Lookup(f.Body, "result"); result != nil {
			return result
		}
		return rawjson.Lookup(f.Body, "error")
	}
	return nil
}

// diffJSON compares two JSON texts line by line, after each has been indented.
func diffJSON(a, b []byte) []string {
	old, now := indentedLines(a), indentedLines(b)
	lines, from := []string{}, 0
	for _, change := range linediff.FindChanges(old, now) {
		for _, line := range old[from:change.Old] {
			lines = append(lines, "  "+line)
		}
		for _, line := range old[change.Old:change.OldEnd] {
			lines = append(lines, "- "+line)
		}
		for _, line := range now[change.New:change.NewEnd] {
			lines = append(lines, "+ "+line)
		}
		from = change.OldEnd
	}
	for _, line := range old[from:] {
		lines = append(lines, "  "+line)
	}
	return lines[:min(len(lines), maxDiffLines)]
}

// maxDiffLines limits the lines of a difference.
const maxDiffLines = 2000

// maxIndent limits the levels that are indented: a text that is as deep as it is long would need
// hundreds of times its size.
const maxIndent = 32

// indentedLines returns the first lines of a JSON text with one value in each.
func indentedLines(raw []byte) (lines []string) {
	level, line := 0, []byte(nil)
	endLine := func() {
		lines = append(lines, string(line))
		line = append(line[:0], strings.Repeat("  ", min(level, maxIndent))...)
	}
	for at := 0; at < len(raw) && len(lines) < maxDiffLines; at++ {
		switch c := raw[at]; c {
		case ' ', '\t', '\n', '\r':
		case '"':
			end := at + 1
			for end < len(raw) && raw[end] != '"' {
				if raw[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(raw))
			line = append(line, raw[at:end]...)
			at = end - 1
		case '{', '[':
			line = append(line, c)
			if next := bytes.TrimLeft(raw[at+1:], " \t\r\n"); len(next) > 0 && next[0] == c+2 { // '}' follows '{' by 2, as ']' does '['
				line = append(line, c+2)
				at = len(raw) - len(next)
				continue
			}
			level++
			endLine()
		case '}', ']':
			level--
			endLine()
			line = append(line, c)
		case ',':
			line = append(line, c)
			endLine()
		case ':':
			line = append(line, ": "...)
		default:
			line = append(line, c)
		}
	}
	if len(line) > 0 && len(lines) < maxDiffLines {
		lines = append(lines, string(line))
	}
	return lines
}
