package secretmask_test

import (
	"errors"
	"testing"

	"github.com/dowel-mcp/dowel/internal/secretmask"
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
		if got := secretmask.URL(raw); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}

func TestModelError(t *testing.T) {
	const raw = "https://me:hush%2F1@host/v1?key=sk-abc&v=1"
	cause := errors.New(`post "https://me:***@host/v1/x?key=sk-abc&v=1": 401, hush/1, me:hush%2F1@host, in ` + raw)
	err := secretmask.ModelError(cause, raw)
	if got, want := err.Error(), `post "https://****@host/v1/x?key=****&v=****": 401, ****, ****@host, in https://****@host/v1?key=****&v=****`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
	if secretmask.ModelError(nil, raw) != nil || secretmask.ModelError(cause, "https://host/v1") != cause {
		t.Error("a text without secrets is changed")
	}
}

func TestKey(t *testing.T) {
	for _, tt := range []struct{ key, text, want string }{
		{"sk-verysecretbad", "Incorrect API key provided: sk-verysecretbad.", "Incorrect API key provided: ****."},
		{"sk-0123456789abcdefWXYZ", "no key sk-0123456789abcdefWXYZ, as ...WXYZ", "no key ****WXYZ, as ...WXYZ"},
		{"a/b+c=d/e+f", "at ?key=a%2Fb%2Bc%3Dd%2Fe%2Bf and a/b+c=d/e+f", "at ?key=**** and ****"},
		{"ollama", "http://ollama:11434", "http://ollama:11434"},
		{"", "nothing", "nothing"},
	} {
		cause := errors.New(tt.text)
		if err := secretmask.ModelError(cause, "http://host/v1", tt.key); err.Error() != tt.want || !errors.Is(err, cause) {
			t.Errorf("%s: got %v, want %s", tt.key, err, tt.want)
		}
	}
	const raw = "https://host/v1?token=hush-hush"
	if got, want := secretmask.ModelText("hush-hush and sk-verysecret at "+raw, raw, "sk-verysecret"), "**** and **** at https://host/v1?token=****"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
