package rawjson

import "testing"

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		` { "b" : [ 1 , {} ] , "a" : "\u00e9\/" } `: `{"a":"é/","b":[1e0,{}]}`,
		`true`:                                   `true`,
		`null`:                                   `null`,
		`""`:                                     `""`,
		`[]`:                                     `[]`,
		`{"a":1,"a":2}`:                          `{"a":1e0,"a":2e0}`,
		`{"\u0061":1}`:                           `{"a":1e0}`,
		`0`:                                      `0`,
		`-0.00e7`:                                `0`,
		`1200`:                                   `12e2`,
		`1.2e3`:                                  `12e2`,
		`12E+0002`:                               `12e2`,
		`1200.0`:                                 `12e2`,
		`-0.0012`:                                `-12e-4`,
		`9007199254740993`:                       `9007199254740993e0`,
		`9007199254740993.5`:                     `90071992547409935e-1`,
		`1e99999999999999999999`:                 `1e99999999999999999999`,
		`0.1000000000000000055511151231257827e0`: `1000000000000000055511151231257827e-34`,
	} {
		if got := string(AppendCanonical(nil, []byte(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	for _, bad := range []string{"", "+1", "x", "1x", "01", "1.", "-", "1 2", "0x1"} {
		if got, ok := CanonicalNumber([]byte(bad)); ok {
			t.Errorf("%q is read as the number %s", bad, got)
		}
	}
}
