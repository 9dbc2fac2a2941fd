package schema

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestEncode(t *testing.T) {
	type inner struct {
		Zero  int  `json:"zero,omitempty"`
		False bool `json:"false,omitempty"`
		Ptr   *int `json:"ptr,omitempty"`
	}
	for _, c := range []struct {
		value any
		want  string
	}{
		{nil, `null`},
		{[]string(nil), `[]`},
		{map[string]int(nil), `{}`},
		{map[string]int{"b": 1, "a": 2}, `{"a":2,"b":1}`},
		{map[string]any{"b": []int(nil), "a": 90 * time.Second}, `{"a":"1m30s","b":[]}`},
		{struct{ D, Z time.Duration }{D: 36 * time.Hour}, `{"D":"36h0m0s","Z":"0s"}`},
		{map[time.Duration]int{time.Minute: 1}, `{"1m0s":1}`},
		{[]*time.Duration{nil}, `[null]`},
		{time.Date(2026, 7, 28, 1, 2, 3, 4000, time.UTC), `"2026-07-28T01:02:03.000004Z"`},
		{[]byte{0xff, 0}, `"/wA="`},
		{[2]byte{1, 2}, `"AQI="`},
		{inner{}, `{}`},
		{"<&>\u2028", "\"<&>\u2028\""},
	} {
		if got, err := Encode(c.value); err != nil || string(got) != c.want {
			t.Errorf("%T: got %s (%v), want %s", c.value, got, err, c.want)
		}
	}
	if got, err := AppendEncode([]byte("x:"), []int{1}); err != nil || string(got) != `x:[1]` {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := AppendEncode([]byte("x"), make(chan int)); err == nil || string(got) != "x" {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestDecode(t *testing.T) {
	type in struct {
		Name  string        `json:"name"`
		Wait  time.Duration `json:"wait"`
		Until *time.Time    `json:"until"`
		Small int8          `json:"small"`
		List  []string      `json:"list"`
		Any   any           `json:"any"`
	}
	var v in
	if err := Decode([]byte(`{"name":"n","NAME":"other","unknown":1,"wait":"1h30m","until":"2026-07-28T00:00:00Z","small":-128,"any":{"d":"1h"}}`), &v); err != nil {
		t.Fatal(err)
	}
	if v.Name != "n" || v.Wait != 90*time.Minute || v.Until == nil || v.Small != -128 || v.Any.(map[string]any)["d"] != "1h" {
		t.Errorf("got %+v", v)
	}
	if err := Decode([]byte(`{"wait":null,"until":null,"list":null}`), &v); err != nil || v.Wait != 0 || v.Until != nil {
		t.Errorf("got %+v, %v", v, err)
	}
	for _, c := range []struct{ text, want string }{
		{`{"wait":"soon"}`, `/wait: must be a duration such as "1h30m" (got "soon")`},
		{`{"wait":5}`, `/wait: must be a duration such as "1h30m" (got "5")`},
		{`{"until":"tomorrow"}`, `/until: must be a time such as "2006-01-02T15:04:05Z" (got "tomorrow")`},
		{`{"small":128}`, `/small: must be what a Go int8 can hold: `},
		{`{"list":["a",1]}`, `/list/1: must be what a Go string can hold (got a JSON number)`},
	} {
		var invalid *ValidationError
		if err := Decode([]byte(c.text), &v); !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
	var syntax *syntaxError
	if err := Decode([]byte(`{"name":"x}`), &v); !errors.As(err, &syntax) {
		t.Errorf("got %v", err)
	}
	var invalid *ValidationError
	if err := Decode([]byte(`1`), new(chan int)); err == nil || errors.As(err, &invalid) {
		t.Errorf("a Go type that cannot be decoded is not the value's fault: %v", err)
	}
}

type smallIn struct {
	Message string `json:"message"`
}

type nestedIn struct {
	Query  string `json:"query"`
	Limit  int    `json:"limit"`
	Filter struct {
		Tags  []string `json:"tags"`
		Range struct {
			From float64 `json:"from"`
			To   float64 `json:"to"`
		} `json:"range"`
		Kind string `json:"kind"`
	} `json:"filter"`
	Items []struct {
		ID   int    `json:"id"`
		Name string `json:"name"`
		OK   bool   `json:"ok"`
	} `json:"items"`
}

type bigIn struct {
	Rows []struct {
		ID    int     `json:"id"`
		Name  string  `json:"name"`
		Score float64 `json:"score"`
		Note  string  `json:"note"`
	} `json:"rows"`
}

type waitingIn struct {
	Message string        `json:"message"`
	Wait    time.Duration `json:"wait"`
}

func BenchmarkDecode(b *testing.B) {
	decode := func(name, text string, fresh func() any) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			data := []byte(text)
			for b.Loop() {
				if err := Decode(data, fresh()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	decode("small", `{"message":"hi"}`, func() any { return new(smallIn) })
	decode("duration", `{"message":"hi","wait":"1h"}`, func() any { return new(waitingIn) })
	decode("nested", nestedValue, func() any { return new(nestedIn) })
	decode("1MiB", string(bigValue), func() any { return new(bigIn) })
}

func BenchmarkEncode(b *testing.B) {
	encode := func(name string, text []byte, v any) {
		b.Run(name, func(b *testing.B) {
			if err := Decode(text, v); err != nil {
				b.Fatal(err)
			}
			var buffer []byte
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if buffer, err = AppendEncode(buffer[:0], v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	encode("small", []byte(`{"message":"hi"}`), new(smallIn))
	encode("nested", []byte(nestedValue), new(nestedIn))
	encode("1MiB", bigValue, new(bigIn))
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		mustCompile(b, nestedSchema)
	}
}

func BenchmarkFor(b *testing.B) {
	for b.Loop() {
		if _, err := For[nestedIn](); err != nil {
			b.Fatal(err)
		}
	}
}
