package suggest

import "testing"

func TestSuggestion(t *testing.T) {
	known := []string{"get-sum", "echo", "get_weather"}
	for _, test := range []struct{ word, want string }{
		{"get_sum", "; did you mean get-sum?"},
		{"ehco", "; did you mean echo?"},
		{"getweather", "; did you mean get_weather?"},
		{"zzz", "; there are get-sum, echo, get_weather"},
	} {
		if got := Hint(test.word, known); got != test.want {
			t.Errorf("%s: got %q, want %q", test.word, got, test.want)
		}
	}
	if got := Hint("x", nil); got != "" {
		t.Errorf("nothing is known, and still: %q", got)
	}
}
