package edit

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Object is an object with ordered members.
type Object []Member

// Member is a member of an [Object].
type Member struct {
	Key   string
	Value any
}

// Literal is a value without a JSON type, as text: a TOML date or time, or a number beyond the
// range of float64.
type Literal string

// member returns the value of the last member with a key: later ones override earlier ones.
func (o Object) member(key string) (any, bool) {
	for _, m := range slices.Backward(o) {
		if m.Key == key {
			return m.Value, true
		}
	}
	return nil, false
}

// maxDepth limits the nesting of values. It stops the recursion for a value that contains itself.
const maxDepth = 200

// normalize converts v to nil, bool, string, int64, uint64 (only above the range of int64),
// float64, Literal, Object or []any.
func normalize(v any) (any, error) { return normalizeValue(v, 0) }

func normalizeValue(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the value is nested deeper than %d levels", maxDepth)
	}
	switch v := v.(type) {
	case nil, bool, Literal:
		return v, nil
	case json.Number:
		return parseNumber(string(v))
	case Object:
		return normalizeObject(v, depth)
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Bool:
		return r.Bool(), nil
	case reflect.String:
		if !utf8.ValidString(r.String()) {
			return nil, fmt.Errorf("the string %q is not valid UTF-8", r.String())
		}
		return r.String(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return r.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return unsignedValue(r.Uint()), nil
	case reflect.Float32, reflect.Float64:
		if math.IsNaN(r.Float()) || math.IsInf(r.Float(), 0) {
			return nil, fmt.Errorf("%v cannot be written", r.Float())
		}
		return r.Float(), nil
	case reflect.Slice, reflect.Array:
		list := make([]any, r.Len())
		for i := range list {
			var err error
			if list[i], err = normalizeValue(r.Index(i).Interface(), depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	case reflect.Map:
		if r.Type().Key().Kind() == reflect.String {
			return normalMap(r, depth)
		}
	}
	return nil, fmt.Errorf("a %T cannot be written", v)
}

func normalMap(r reflect.Value, depth int) (any, error) {
	members := map[string]any{}
	for k, v := range r.Seq2() {
		members[k.String()] = v.Interface()
	}
	var o Object
	for _, key := range slices.Sorted(maps.Keys(members)) {
		o = append(o, Member{key, members[key]})
	}
	return normalizeObject(o, depth)
}

func normalizeObject(o Object, depth int) (any, error) {
	result := make(Object, 0, len(o))
	for _, m := range o {
		if _, twice := result.member(m.Key); twice {
			return nil, fmt.Errorf("the value has the key %q twice", m.Key)
		}
		if !utf8.ValidString(m.Key) {
			return nil, fmt.Errorf("the key %q is not valid UTF-8", m.Key)
		}
		v, err := normalizeValue(m.Value, depth+1)
		if err != nil {
			return nil, err
		}
		result = append(result, Member{m.Key, v})
	}
	return result, nil
}

func unsignedValue(u uint64) any {
	if u <= math.MaxInt64 {
		return int64(u)
	}
	return u
}

// parseNumber parses a JSON number.
func parseNumber(s string) (any, error) {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(s, 10, 64); err == nil {
		return u, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !json.Valid([]byte(s)) {
		return nil, fmt.Errorf("%q is not a number that can be written", s)
	}
	return f, nil
}

// equalValues compares values. It ignores the order of members.
func equalValues(a, b any) bool {
	switch a := a.(type) {
	case Object:
		b, ok := b.(Object)
		if !ok || len(a) != len(b) {
			return false
		}
		return slices.EqualFunc(sortedByKey(a), sortedByKey(b), func(m, n Member) bool { return m.Key == n.Key && equalValues(m.Value, n.Value) })
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equalValues)
	case int64, uint64, float64:
		return equalNumbers(a, b)
	}
	switch b.(type) {
	case Object, []any:
		return false
	}
	return a == b
}

// sortedByKey returns the members sorted by key. Members with the same key keep their order.
func sortedByKey(o Object) Object {
	if slices.IsSortedFunc(o, compareKeys) {
		return o
	}
	o = slices.Clone(o)
	slices.SortStableFunc(o, compareKeys)
	return o
}

func compareKeys(m, n Member) int {
	switch {
	case m.Key < n.Key:
		return -1
	case m.Key > n.Key:
		return 1
	}
	return 0
}

// equalNumbers treats 1 and 1.0 as equal, as JSON does.
func equalNumbers(a, b any) bool {
	if a == b {
		return true
	}
	x, ok := exactFloat(a)
	y, ok2 := exactFloat(b)
	return ok && ok2 && x == y
}

// exactFloat returns v as a float64 if that is exact.
func exactFloat(v any) (float64, bool) {
	const exact = 1 << 53
	switch v := v.(type) {
	case int64:
		return float64(v), -exact <= v && v <= exact
	case float64:
		return v, true
	}
	return 0, false
}
