package toolargs

import (
	"encoding/json"
	"strings"
	"testing"
)

// formOfAllKinds is a form with a field of every kind.
const formOfAllKinds = `{"type":"object","properties":{
	"name":{"type":"string","title":"Your name","description":"As on your passport","minLength":2},
	"age":{"type":"integer","minimum":0,"maximum":150,"default":30},
	"agree":{"type":"boolean"},
	"colour":{"type":"string","oneOf":[{"const":"#f00","title":"Red"},{"const":"#0f0","title":"Green"}]},
	"days":{"type":"array","items":{"type":"string","enum":["mon","tue","wed"]},"minItems":1},
	"mail":{"type":"string","format":"email"}
},"required":["name","colour"]}`

func TestEntered(t *testing.T) {
	for _, test := range []struct{ field, answer, want, fails string }{
		{"name", "Ada", `"Ada"`, ""},
		{"name", " Ada ", `" Ada "`, ""},
		{"name", "A", "", "at least 2"},
		{"name", "", "", "an answer is needed"},
		{"age", "31", "31", ""},
		{"age", "", "30", ""},
		{"age", "151", "", "150"},
		{"age", "old", "", "must be a whole number"},
		{"agree", "y", "true", ""},
		{"agree", "No", "false", ""},
		{"agree", "maybe", "", "yes or no"},
		{"agree", "", "", ""},
		{"colour", "1", `"#f00"`, ""},
		{"colour", "green", `"#0f0"`, ""},
		{"colour", "#0F0", `"#0f0"`, ""},
		{"colour", "3", "", "from 1 to 2"},
		{"days", "mon, 3", `["mon","wed"]`, ""},
		{"days", "mon,", "", `"" is none of the choices`},
		{"mail", "ada@example.com", `"ada@example.com"`, ""},
		{"mail", "Ada <ada@example.com>", "", "of the format email"},
		{"mail", "ada", "", "of the format email"},
	} {
		f, ok := NewSpec(json.RawMessage(formOfAllKinds)).findProperty(test.field)
		if !ok {
			t.Fatalf("no field %s", test.field)
		}
		got, err := f.ReadAnswer(test.answer)
		switch {
		case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
			t.Errorf("%s %q: got %s, %v, want an error with %q", test.field, test.answer, got, err, test.fails)
		case test.fails == "" && (err != nil || string(got) != test.want):
			t.Errorf("%s %q: got %s, %v, want %s", test.field, test.answer, got, err, test.want)
		}
	}
}

// A choice that looks like a number is found by its value before its place.
func TestPickByValueFirst(t *testing.T) {
	choices := []choice{{value: json.RawMessage(`"2"`)}, {value: json.RawMessage(`"1"`)}}
	if got, err := parseChoice(choices, "1"); err != nil || string(got) != `"1"` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestFormats(t *testing.T) {
	for _, test := range []struct {
		format, text string
		ok           bool
	}{
		{"uri", "https://example.com/x", true},
		{"uri", "example.com", false},
		{"date", "2026-02-28", true},
		{"date", "2026-02-30", false},
		{"date-time", "2026-02-28T10:00:00+01:00", true},
		{"date-time", "2026-02-28", false},
		{"unknown", "anything", true},
		{"", "anything", true},
	} {
		if err := checkFormat(test.format, test.text); (err == nil) != test.ok {
			t.Errorf("%s %q: got %v", test.format, test.text, err)
		}
	}
}

func TestDemands(t *testing.T) {
	for field, want := range map[string]string{
		"name":   "text, at least 2 characters, required",
		"age":    "integer, 0 to 150, Enter takes 30",
		"agree":  "yes or no, Enter leaves it out",
		"colour": "number or name, required",
		"days":   "numbers or names, with commas between them, at least 1 of them, Enter leaves it out",
		"mail":   "email, Enter leaves it out",
	} {
		f, _ := NewSpec(json.RawMessage(formOfAllKinds)).findProperty(field)
		if got := f.Demands(); got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}
}
