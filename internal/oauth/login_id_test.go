package oauth

import (
	"testing"
	"time"
)

// The id of a login has the time of the login, and no other part that repeats.
func TestLoginID(t *testing.T) {
	began := time.Now().Truncate(time.Millisecond)
	one, two := NewLoginID(), NewLoginID()
	if made, ok := LoginTime(one); !ok || made.Before(began) || made.After(time.Now()) {
		t.Errorf("%s was made at %v, %v", one, made, ok)
	}
	if one == two {
		t.Errorf("two logins have the id %s", one)
	}
	for _, id := range []string{"", "ABCDEF", "-ABC", "!-ABC", "12-"} {
		if made, ok := LoginTime(id); ok {
			t.Errorf("%q was made at %v", id, made)
		}
	}
}
