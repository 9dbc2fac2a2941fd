package mcp

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// This file is the one table of what each revision sends as it is, leaves out, wraps or turns into text. It works on raw
// JSON: what needs no change keeps its bytes, and costs a scan of the members that have a rule.

// AdaptResult returns the result of a method as the revision understands it; raw itself where nothing has to change.
func AdaptResult(r Revision, method string, raw json.RawMessage) json.RawMessage {
	return adapt(resultRules, r, method, raw)
}

// AdaptParams returns the params of a request or notification as the revision understands them; raw itself where nothing
// has to change.
func AdaptParams(r Revision, method string, raw json.RawMessage) json.RawMessage {
	return adapt(paramRules, r, method, raw)
}

func adapt(rules func() map[string]shape, r Revision, method string, raw json.RawMessage) json.RawMessage {
	if r >= LatestRevision {
		return raw
	}
	s, ok := rules()[method]
	if !ok {
		return raw
	}
	out, _ := s.apply(r, raw)
	return out
}

// shape says what becomes of a value in older revisions.
type shape struct {
	// since maps members to the first revision that has them; before that they are left out.
	since map[string]Revision
	// members and elements are the shapes of an object's members and an array's elements.
	members  map[string]shape
	elements *shape
	// turn replaces the value, or leaves it out by returning nil; ok is false where it stays.
	turn func(r Revision, raw []byte) (out []byte, ok bool)
}

// apply returns the adapted value and whether it differs; nil leaves it out.
func (s shape) apply(r Revision, raw []byte) (out []byte, changed bool) {
	if s.turn != nil {
		if out, ok := s.turn(r, raw); ok {
			return out, true
		}
	}
	switch {
	case s.elements != nil && !rawjson.IsObject(raw):
		return s.applyArray(r, raw)
	case s.elements != nil:
		return s.elements.apply(r, raw) // one where several may stand
	case s.since != nil || s.members != nil:
		return s.applyObject(r, raw)
	}
	return raw, false
}

func (s shape) applyObject(r Revision, raw []byte) ([]byte, bool) {
	b := rebuild{raw: raw, open: '{', close: '}'}
	for it := rawjson.Object(raw); it.Next(); {
		if since, ok := s.since[string(it.Key)]; ok && r < since {
			b.leaveOut(it)
			continue
		}
		member, ok := s.members[string(it.Key)]
		if !ok {
			b.keep(it)
			continue
		}
		b.replace(it, r, member)
	}
	return b.done()
}

func (s shape) applyArray(r Revision, raw []byte) ([]byte, bool) {
	b := rebuild{raw: raw, open: '[', close: ']'}
	for it := rawjson.Array(raw); it.Next(); {
		b.replace(it, r, *s.elements)
	}
	return b.done()
}

// rebuild copies an object or array from its first change on; without one it copies nothing.
type rebuild struct {
	raw         []byte
	open, close byte
	out         []byte
	begin, end  int // of the members kept so far, while out is nil
}

func (b *rebuild) keep(it rawjson.Iterator) { b.add(b.raw[it.Start:it.End], it) }

func (b *rebuild) add(member []byte, it rawjson.Iterator) {
	if b.out == nil {
		if b.end == 0 {
			b.begin = it.Start
		}
		b.end = it.End
		return
	}
	if len(b.out) > 1 {
		b.out = append(b.out, ',')
	}
	b.out = append(b.out, member...)
}

func (b *rebuild) leaveOut(rawjson.Iterator) { b.start() }

func (b *rebuild) start() {
	if b.out == nil {
		b.out = append(make([]byte, 0, len(b.raw)), b.open)
		b.out = append(b.out, b.raw[b.begin:b.end]...)
	}
}

func (b *rebuild) replace(it rawjson.Iterator, r Revision, s shape) {
	value, changed := s.apply(r, it.Value)
	if !changed {
		b.keep(it)
		return
	}
	b.start()
	if value == nil {
		return
	}
	name := b.raw[it.Start : it.End-len(it.Value)]
	b.add(append(append([]byte(nil), name...), value...), it)
}

func (b *rebuild) done() ([]byte, bool) {
	if b.out == nil {
		return b.raw, false
	}
	return append(b.out, b.close), true
}
