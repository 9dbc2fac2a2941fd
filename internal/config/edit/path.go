package edit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// selector reads a path's element of the form [key=value].
func selector(element string) (key, value string, ok bool) {
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

// child returns the index of what a path's element means in a container; -1 if there is no such child.
func child(container any, element string) (int, error) {
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
		key, value, ok := selector(element)
		if !ok {
			return -1, fmt.Errorf("%q is no entry of a list; those have the form [name=…]", element)
		}
		for i, entry := range c {
			if o, ok := entry.(Object); ok {
				if v, _ := o.member(key); v == value {
					at, twice = i, at >= 0
				}
			}
		}
	default:
		return -1, fmt.Errorf("there is no %q in a value that is neither an object nor a list", element)
	}
	if twice {
		return -1, fmt.Errorf("%q is there twice: %w", element, ErrUnsafe)
	}
	return at, nil
}

// nth returns a container's child.
func nth(container any, i int) any {
	if o, ok := container.(Object); ok {
		return o[i].Value
	}
	return container.([]any)[i]
}

// find returns the value at path.
func find(model any, path []string) (v any, ok bool, err error) {
	v = model
	for _, element := range path {
		i, err := child(v, element)
		if err != nil || i < 0 {
			return nil, false, err
		}
		v = nth(v, i)
	}
	return v, true, nil
}

// assign returns a copy of model with the value at path set.
func assign(model any, path []string, v any) (any, error) {
	if len(path) == 0 {
		return v, nil
	}
	if model == nil {
		return nest(path, v), nil
	}
	i, err := child(model, path[0])
	if err != nil {
		return nil, err
	}
	switch c := model.(type) {
	case Object:
		c = slices.Clone(c)
		if i < 0 {
			return append(c, Member{path[0], nest(path[1:], v)}), nil
		}
		c[i].Value, err = assign(c[i].Value, path[1:], v)
		return c, err
	case []any:
		c = slices.Clone(c)
		if i < 0 {
			return append(c, nest(path, v).([]any)...), nil
		}
		c[i], err = assign(c[i], path[1:], v)
		return c, err
	}
	return nil, errors.New("the file's top level is no object")
}

// nest returns what makes path lead to v where there is nothing yet.
func nest(path []string, v any) any {
	for _, element := range slices.Backward(path) {
		key, value, ok := selector(element)
		if !ok {
			v = Object{{element, v}}
			continue
		}
		entry := v.(Object) // complete has seen to it
		if _, there := entry.member(key); !there {
			entry = slices.Insert(slices.Clone(entry), 0, Member{key, value})
		}
		v = []any{entry}
	}
	return v
}

// complete returns the value for path: an entry of a list has its own name.
func complete(model any, path []string, v any) (any, error) {
	key, value, ok := selector(path[len(path)-1])
	if ok {
		parent, _, err := find(model, path[:len(path)-1])
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
		if _, _, ok := selector(element); !ok {
			continue
		}
		if _, _, nested := selector(path[i+1]); nested {
			if parent, there, _ := find(model, path[:i+1]); !there || parent == nil {
				return nil, fmt.Errorf("%s cannot be both an object with a name and a list", element)
			}
		}
	}
	return v, nil
}

// without returns a copy of model without what is at path, which is there.
func without(model any, path []string) any {
	i, err := child(model, path[0])
	if err != nil || i < 0 {
		return model
	}
	switch c := model.(type) {
	case Object:
		c = slices.Clone(c)
		if len(path) == 1 {
			return slices.Delete(c, i, i+1)
		}
		c[i].Value = without(c[i].Value, path[1:])
		return c
	case []any:
		c = slices.Clone(c)
		if len(path) == 1 {
			return slices.Delete(c, i, i+1)
		}
		c[i] = without(c[i], path[1:])
		return c
	}
	return model
}

// equalWithoutEmpty compares got with want, from which what has become empty above path may be missing: a table of TOML
// that has no line of its own is not there without its subtables.
func equalWithoutEmpty(got, want any, path []string) bool {
	for n := len(path) - 1; n > 0; n-- {
		v, ok, _ := find(want, path[:n])
		if o, isObject := v.(Object); !ok || isObject && len(o) > 0 {
			return false
		}
		if l, isList := v.([]any); isList && len(l) > 0 {
			return false
		}
		want = without(want, path[:n])
		if equal(got, want) {
			return true
		}
	}
	return false
}
