package schema

import "testing"

func TestDecodeTakesEveryInteger(t *testing.T) {
	type in struct {
		N int    `json:"n"`
		S string `json:"s"`
	}
	for raw, want := range map[string]in{
		`{"n":5.0,"s":"1.0 \" 2.0"}`: {5, `1.0 " 2.0`},
		`{"n":1e3}`:                  {1000, ""},
		`{"n":-2.50E1}`:              {-25, ""},
		`{"n":1500e-2}`:              {15, ""},
		`{"n":9007199254740993.0}`:   {9007199254740993, ""},
		`{"s":"x","n":0.0}`:          {0, "x"},
		`{"n":7}`:                    {7, ""},
		`{"n":1.000000000000000}`:    {1, ""},
	} {
		var got in
		if err := Decode([]byte(raw), &got); err != nil || got != want {
			t.Errorf("%s: %+v, %v", raw, got, err)
		}
	}
	for _, raw := range []string{`{"n":5.5}`, `{"n":1e99}`, `{"n":1e999999999}`, `{"n":99999999999999999999.0}`} {
		if err := Decode([]byte(raw), new(in)); err == nil {
			t.Errorf("%s was decoded", raw)
		}
	}
}
