package modelhttp

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestBaseURL(t *testing.T) {
	for raw, want := range map[string]string{
		"":                              "",
		"http://host/v1":                "http://host/v1",
		"http://host/v1/":               "http://host/v1/",
		"http://host/v1/chat":           "http://host/v1",
		"http://host/v1/chat//?k=/chat": "http://host/v1?k=/chat",
		"http://host?k=/chat":           "http://host?k=/chat",
		"http://host/chat/v1#/chat":     "http://host/chat/v1#/chat",
	} {
		if got := BaseURL(raw, "/chat"); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			name, value string
			want        time.Duration
		}{
			{"Retry-After", "", 0}, {"Retry-After", "soon", 0}, {"Retry-After", "1.5", 1500 * time.Millisecond}, {"Retry-After", "1e300", 1e9 * time.Second},
			{"Retry-After-Ms", "20", 20 * time.Millisecond}, {"Retry-After-Ms", "1e300", 1e12 * time.Millisecond},
			{"Retry-After", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat), time.Minute},
		} {
			if got := wait(&http.Response{Header: http.Header{tt.name: {tt.value}}}); got != tt.want {
				t.Errorf("%s %s: got %v, want %v", tt.name, tt.value, got, tt.want)
			}
		}
	})
}

// What is no JSON is found behind a long stream, too.
func TestNotJSON(t *testing.T) {
	event := "data: {\"a\":\"" + strings.Repeat("b", 1000) + "\"}\n\n"
	a := &answer{Reader: strings.NewReader(strings.Repeat(event, 1000) + "data: {\"error\": oops}\n\ndata: [DONE]\n\n")}
	if n, err := io.Copy(io.Discard, a); err != nil || n < 1e6 || len(a.recent) > 2*kept || len(a.first) != 1024 {
		t.Fatal(n, err, len(a.recent), len(a.first))
	}
	w := &Watch{Place: "here", Advice: "look", Mask: func(s string) string { return s }, answer: a}
	var v any
	err := w.Explain(json.Unmarshal([]byte("oops"), &v))
	if want := "here sends what is no JSON in its stream (it begins: {\"error\": oops}): try again, and if it fails again, look"; err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if other := errors.New("other"); w.Explain(other) != other || w.Explain(nil) != nil {
		t.Error("other errors are changed")
	}
}

// A stream may begin slowly, and with what means nothing.
func TestIsStream(t *testing.T) {
	for head, want := range map[string]bool{
		"d": true, "data: {}": true, "\ufeffevent: a": true, "\n\n": true, ": hello": true, "id:1": true, "retry": true,
		"<html>": false, "{": false, "dat a": false, "hello": false,
	} {
		if isStream([]byte(head)) != want {
			t.Errorf("%q: want %v", head, want)
		}
	}
}
