package mcpwire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// lostContent names the content that revisions before 2025-06-18 lack in the blocks that they know.
func lostContent(format string, _ bool) string {
	at := func(i int, name string) string { return fmt.Sprintf(format, i) + "." + name }
	var lost []string
	for i := range 4 {
		lost = append(lost, at(i, "_meta"))
		if i != 2 {
			lost = append(lost, at(i, "annotations.lastModified"))
		}
	}
	return strings.Join(append(lost, at(3, "resource._meta"), at(4, "resource._meta"), at(5, "_meta")), " ")
}

// differences lists the paths that are in full and not in got, and those whose value is another.
// Their children are not listed.
func differences(path string, full, got any) (lost, changed []string) {
	fullMembers, gotMembers := children(full), children(got)
	if fullMembers == nil || gotMembers == nil || reflect.TypeOf(full) != reflect.TypeOf(got) {
		if !reflect.DeepEqual(full, got) {
			changed = append(changed, strings.TrimPrefix(path, "."))
		}
		return lost, changed
	}
	for name, value := range fullMembers {
		other, ok := gotMembers[name]
		if !ok {
			lost = append(lost, strings.TrimPrefix(path+"."+name, "."))
			continue
		}
		l, c := differences(path+"."+name, value, other)
		lost, changed = append(lost, l...), append(changed, c...)
	}
	return lost, changed
}

func children(v any) map[string]any {
	switch v := v.(type) {
	case map[string]any:
		return v
	case []any:
		m := map[string]any{}
		for i, item := range v {
			m[fmt.Sprint(i)] = item
		}
		return m
	}
	return nil
}

func decodeAny(t *testing.T, raw []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

func sorted(list string) string {
	fields := strings.Fields(list)
	slices.Sort(fields)
	return strings.Join(fields, " ")
}
