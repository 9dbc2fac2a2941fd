package urlmask_test

import (
	"errors"
	"testing"

	"github.com/dowel-mcp/dowel/internal/urlmask"
)

func TestURL(t *testing.T) {
	for raw, want := range map[string]string{
		"":                                     "",
		"http://localhost:11434/v1":            "http://localhost:11434/v1",
		"https://me:hush@host/v1":              "https://****@host/v1",
		"https://sk-123@host/v1/@x":            "https://****@host/v1/@x",
		"https://host/v1?key=hush&v=&b=2#frag": "https://host/v1?key=****&v=&b=****",
		"https://host/v1?hush":                 "https://host/v1?****",
		"me:hush@host/v1":                      "****@host/v1",
		"https://me:hu/sh@host/v1":             "https://****@host/v1",
		"localhost:1/v1":                       "localhost:1/v1",
	} {
		if got := urlmask.URL(raw); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}

func TestError(t *testing.T) {
	const raw = "https://me:hush%2F1@host/v1?key=sk-abc&v=1"
	cause := errors.New(`post "https://me:***@host/v1/x?key=sk-abc&v=1": 401, hush/1, me:hush%2F1@host, in ` + raw)
	err := urlmask.Error(cause, raw)
	if got, want := err.Error(), `post "https://****@host/v1/x?key=****&v=****": 401, ****, ****@host, in https://****@host/v1?key=****&v=****`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
	if urlmask.Error(nil, raw) != nil || urlmask.Error(cause, "https://host/v1") != cause {
		t.Error("what holds no secret is changed")
	}
}
