package edit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// parseSelector parses a path element of the form [key=value]. ok is false for a plain key.
func parseSelector(element string) (key, value string, ok bool) {
	inner, ok := strings.CutPrefix(element, "[")
	if !ok {
		return "", "", false
	}
	if inner, ok = strings.CutSuffix(inner, "]"); !ok {
		return "", "", false
	}
	key, value, ok = strings.Cut(inner, "=")
	return key, value, ok && key != ""
}

// childIndex returns the index of the child that a path element selects, or -1 if it does not
// exist.
func childIndex(container any, element string) (int, error) {
	at, twice := -1, false
	switch c := container.(type) {
	case nil:
		return -1, nil
	case Object:
		for i, m := range c {
			if m.Key == element {
				at, twice = i, at >= 0
			}
		}
	case []any:
		key, value, ok := parseSelector(element)
		if !ok {
			return -1, fmt.Errorf("%q does not select an entry of a list: want the form [name=…]", element)
		}
		for i, entry := range c {
			if o, ok := entry.(Object); ok {
				if v, _ := o.member(key); v == value {
					at, twice = i, at >= 0
				}
			}
		}
	default:
		return -1, fmt.Errorf("cannot find %q in a value that is neither an object nor a list", element)
	}
	if twice {
		return -1, fmt.Errorf("%q occurs twice: %w", element, ErrUnsafe)
	}
	return at, nil
}

// nthChild returns the i-th child of a container.
func nthChild(container any, i int) any {
	if o, ok := container.(Object); ok {
		return o[i].Value
	}
	return container.([]any)[i]
}

// lookUp returns the value at path. ok is false if the path is missing.
func lookUp(model any, path []string) (v any, ok bool, err error) {
	v = model
	for _, element := range path {
		i, err := childIndex(v, element)
		if err != nil || i < 0 {
			return nil, false, err
		}
		v = nthChild(v, i)
	}
	return v, true, nil
}

// assignAt returns a copy of model with v at path.
func assignAt(model any, path []string, v any) (any, error) {
	if len(path) == 0 {
		return v, nil
	}
	if model == nil {
		return nestValue(path, v), nil
	}
	i, err := childIndex(model, path[0])
	if err != nil {
		return nil, err
	}
	switch c := model.(type) {
	case Object:
		c = slices.Clone(c)
		if i < 0 {
			return append(c, Member{path[0], nestValue(path[1:], v)}), nil
		}
		c[i].Value, err = assignAt(c[i].Value, path[1:], v)
		return c, err
	case []any:
		c = slices.Clone(c)
		if i < 0 {
			return append(c, nestValue(path, v).([]any)...), nil
		}
		c[i], err = assignAt(c[i], path[1:], v)
		return c, err
	}
	return nil, errors.New("the file's top level is not an object")
}

// nestValue wraps v in the objects and lists that make path lead to it.
func nestValue(path []string, v any) any {
	for _, element := range slices.Backward(path) {
		key, value, ok := parseSelector(element)
		if !ok {
			v = Object{{element, v}}
			continue
		}
		entry := v.(Object) // addEntryName has ensured this
		if _, there := entry.member(key); !there {
			entry = slices.Insert(slices.Clone(entry), 0, Member{key, value})
		}
		v = []any{entry}
	}
	return v
}

// addEntryName returns v with the name that the last path element selects, if that element selects
// a list entry. It rejects values and paths that cannot be written.
func addEntryName(model any, path []string, v any) (any, error) {
	key, value, ok := parseSelector(path[len(path)-1])
	if ok {
		parent, _, err := lookUp(model, path[:len(path)-1])
		if err != nil {
			return nil, err
		}
		_, inObject := parent.(Object)
		ok = !inObject
	}
	if ok {
		o, isObject := v.(Object)
		if !isObject {
			return nil, fmt.Errorf("an entry of the form %s is an object", path[len(path)-1])
		}
		if has, there := o.member(key); !there {
			v = slices.Insert(slices.Clone(o), 0, Member{key, value})
		} else if has != value {
			return nil, fmt.Errorf("the value's own %s is %v", key, has)
		}
	}
	for i, element := range path[:len(path)-1] {
		if _, _, ok := parseSelector(element); !ok {
			continue
		}
		if _, _, nested := parseSelector(path[i+1]); nested {
			if parent, there, _ := lookUp(model, path[:i+1]); !there || parent == nil {
				return nil, fmt.Errorf("%s cannot be both an object with a name and a list", element)
			}
		}
	}
	return v, nil
}

// removeFrom returns a copy of model without the value at path, which must exist.
func removeFrom(model any, path []string) any {
	i, err := childIndex(model, path[0])
	if err != nil || i < 0 {
		return model
	}
	switch c := model.(type) {
	case Object:
		c = slices.Clone(c)
		if len(path) == 1 {
			return slices.Delete(c, i, i+1)
		}
		c[i].Value = removeFrom(c[i].Value, path[1:])
		return c
	case []any:
		c = slices.Clone(c)
		if len(path) == 1 {
			return slices.Delete(c, i, i+1)
		}
		c[i] = removeFrom(c[i], path[1:])
		return c
	}
	return model
}

// equalWithoutEmpty compares got with want, but accepts that containers on the path that became
// empty are missing. A TOML table without a header disappears with its last subtable.
func equalWithoutEmpty(got, want any, path []string) bool {
	for n := len(path) - 1; n > 0; n-- {
		v, ok, _ := lookUp(want, path[:n])
		if o, isObject := v.(Object); !ok || isObject && len(o) > 0 {
			return false
		}
		if l, isList := v.([]any); isList && len(l) > 0 {
			return false
		}
		want = removeFrom(want, path[:n])
		if equalValues(got, want) {
			return true
		}
	}
	return false
}
