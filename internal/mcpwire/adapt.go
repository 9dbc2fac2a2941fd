package mcpwire

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// This file adapts messages to older revisions: members that a revision lacks are left out, and
// content that it lacks becomes text. adapt_table.go has the rules. Adapting works on raw JSON: a
// value without a change keeps its bytes and costs one scan of the members that have a rule.

// AdaptResult returns the result of a method in the form of revision r. It returns raw itself if
// nothing changes.
func AdaptResult(r mcp.Revision, method string, raw json.RawMessage) json.RawMessage {
	return adaptMessage(resultRules, r, method, raw)
}

// AdaptParams returns the params of a request or notification in the form of revision r. It returns
// raw itself if nothing changes.
func AdaptParams(r mcp.Revision, method string, raw json.RawMessage) json.RawMessage {
	return adaptMessage(paramRules, r, method, raw)
}

func adaptMessage(rules func() map[string]shapeRule, r mcp.Revision, method string, raw json.RawMessage) json.RawMessage {
	if r >= mcp.LatestRevision {
		return raw
	}
	s, ok := rules()[method]
	if !ok {
		return raw
	}
	out, _ := s.adaptValue(r, raw)
	return out
}

// shapeRule says how a value changes in older revisions.
type shapeRule struct {
	// since maps a member to the first revision that has it. Earlier revisions do not get the
	// member.
	since map[string]mcp.Revision
	// members and elements are the rules for an object's members and an array's elements.
	members  map[string]shapeRule
	elements *shapeRule
	// convert replaces the value; a nil result drops it. ok is false if the value stays.
	convert func(r mcp.Revision, raw []byte) (out []byte, ok bool)
}

// adaptValue returns the adapted value and whether it differs; nil means that it is dropped.
func (s shapeRule) adaptValue(r mcp.Revision, raw []byte) (out []byte, changed bool) {
	if s.convert != nil {
		if out, ok := s.convert(r, raw); ok {
			return out, true
		}
	}
	switch {
	case s.elements != nil && !rawjson.IsObject(raw):
		return s.adaptArray(r, raw)
	case s.elements != nil:
		return s.elements.adaptValue(r, raw) // a single element is allowed in place of an array
	case s.since != nil || s.members != nil:
		return s.adaptObject(r, raw)
	}
	return raw, false
}

func (s shapeRule) adaptObject(r mcp.Revision, raw []byte) ([]byte, bool) {
	b := rewriter{raw: raw, open: '{', close: '}'}
	for it := rawjson.Object(raw); it.Next(); {
		if since, ok := s.since[string(it.Key)]; ok && r < since {
			b.dropMember(it)
			continue
		}
		member, ok := s.members[string(it.Key)]
		if !ok {
			b.keepMember(it)
			continue
		}
		b.adaptMember(it, r, member)
	}
	return b.finishCopy()
}

func (s shapeRule) adaptArray(r mcp.Revision, raw []byte) ([]byte, bool) {
	b := rewriter{raw: raw, open: '[', close: ']'}
	for it := rawjson.Array(raw); it.Next(); {
		b.adaptMember(it, r, *s.elements)
	}
	return b.finishCopy()
}

// rewriter copies an object or array from its first change on. Without a change it copies nothing.
type rewriter struct {
	raw         []byte
	open, close byte
	out         []byte
	begin, end  int // range of the members kept so far, while out is nil
}

func (b *rewriter) keepMember(it rawjson.Iterator) { b.appendMember(b.raw[it.Start:it.End], it) }

func (b *rewriter) appendMember(member []byte, it rawjson.Iterator) {
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

func (b *rewriter) dropMember(rawjson.Iterator) { b.startCopy() }

func (b *rewriter) startCopy() {
	if b.out == nil {
		b.out = append(make([]byte, 0, len(b.raw)), b.open)
		b.out = append(b.out, b.raw[b.begin:b.end]...)
	}
}

func (b *rewriter) adaptMember(it rawjson.Iterator, r mcp.Revision, s shapeRule) {
	value, changed := s.adaptValue(r, it.Value)
	if !changed {
		b.keepMember(it)
		return
	}
	b.startCopy()
	if value == nil {
		return
	}
	name := b.raw[it.Start : it.End-len(it.Value)]
	b.appendMember(append(append([]byte(nil), name...), value...), it)
}

func (b *rewriter) finishCopy() ([]byte, bool) {
	if b.out == nil {
		return b.raw, false
	}
	return append(b.out, b.close), true
}
