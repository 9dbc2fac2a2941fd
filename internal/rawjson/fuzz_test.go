package rawjson

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func FuzzCheck(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Add([]byte(strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)))
	f.Add([]byte(strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		err := CheckAll(data)
		if (err == nil) != valid(data) {
			t.Errorf("CheckAll = %v, encoding/json says %v", err, valid(data))
		}
		if end, err := Check(data, 0); err == nil && !json.Valid(data[:end]) {
			t.Errorf("Check ends at %d, behind something other than a value", end)
		}
		if !bytes.Equal(data, before) {
			t.Error("the input was changed")
		}
	})
}

// members decodes the members of an object in order, doubled ones included.
func members(t *testing.T, object []byte) (keys []string, values []json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		keys, values = append(keys, key.(string)), append(values, value)
	}
	return keys, values
}

func FuzzObject(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text), "a", []byte(`1`))
	}
	f.Add([]byte(`{"a\"":1,"\u0061":{"b":[1,"]"]}, "c" : null }`), "a", []byte(`{"x":[]}`))
	f.Add([]byte(`[{"a":1},[2],"]"]`), "a", []byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte, name string, value []byte) {
		if CheckAll(data) != nil || CheckAll(value) != nil {
			return // the functions trust checked bytes
		}
		name = eachReplaced(name)
		if !IsObject(data) {
			array(t, data)
			return
		}
		keys, values := members(t, data)
		i := 0
		var first []byte
		for it := Object(data); it.Next(); i++ {
			if i >= len(keys) || string(it.Key) != keys[i] || !bytes.Equal(it.Value, values[i]) {
				t.Fatalf("member %d is %q: %s, want %v", i, it.Key, it.Value, keys)
			}
			if first == nil && keys[i] == name {
				first = it.Value
			}
		}
		if i != len(keys) {
			t.Fatalf("%d members, want %d", i, len(keys))
		}
		if got := Lookup(data, name); !bytes.Equal(got, first) {
			t.Errorf("Lookup(%q) = %s, want %s", name, got, first)
		}
		edited(t, data, name, value, keys, values)
	})
}

// edited holds Set and AppendMembers against the decoded members.
func edited(t *testing.T, data []byte, name string, value []byte, keys []string, values []json.RawMessage) {
	for _, v := range [][]byte{value, nil} {
		got := Set(data, name, v)
		if err := CheckAll(got); err != nil {
			t.Fatalf("Set(%q, %s) = %s: %v", name, v, got, err)
		}
		gotKeys, gotValues := members(t, got)
		n := 0
		for i, key := range keys {
			if key == name {
				continue
			}
			if n >= len(gotKeys) || gotKeys[n] != key || !bytes.Equal(gotValues[n], values[i]) {
				t.Fatalf("Set(%q) = %s: lost %q", name, got, key)
			}
			n++
		}
		if v != nil && (len(gotKeys) != n+1 || gotKeys[n] != name || !bytes.Equal(gotValues[n], bytes.TrimSpace(v))) || v == nil && len(gotKeys) != n {
			t.Fatalf("Set(%q, %s) = %s", name, v, got)
		}
	}
}

func array(t *testing.T, data []byte) {
	var want []json.RawMessage
	if json.Unmarshal(data, &want) != nil {
		want = nil
	}
	i := 0
	for it := Array(data); it.Next(); i++ {
		if i >= len(want) || !bytes.Equal(it.Value, want[i]) {
			t.Fatalf("element %d is %s, want %s", i, it.Value, want)
		}
	}
	if i != len(want) {
		t.Fatalf("%d elements, want %d", i, len(want))
	}
}

// FuzzCanonical checks that every encoding of a value has the same canonical form.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"b":1,"a":[1.50,"\u00e9",null,true,{}]}`, `-0.0`, `1e5`, `" "`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if !json.Valid([]byte(in)) {
			return
		}
		var indented []byte
		if raw, err := json.MarshalIndent(json.RawMessage(in), "", "\t"); err == nil {
			indented = raw
		}
		once := string(AppendCanonical(nil, []byte(in)))
		if other := string(AppendCanonical(nil, indented)); indented != nil && other != once {
			t.Errorf("%s\n%s", once, other)
		}
		if twice := string(AppendCanonical(nil, []byte(once))); twice != once {
			t.Errorf("%s\n%s", once, twice)
		}
	})
}
