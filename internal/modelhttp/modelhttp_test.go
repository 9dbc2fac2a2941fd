package modelhttp

import (
	"context"
	"errors"
	"fmt"
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

func TestJoinURL(t *testing.T) {
	for base, want := range map[string]string{
		"http://host":                 "http://host/chat",
		"http://host/v1//":            "http://host/v1/chat",
		"http://host/v1?k=v&k=%26&a=": "http://host/v1/chat?a=&k=v&k=%26",
		"http://host/a%2Fb/?k=v#c":    "http://host/a%2Fb/chat?k=v",
		"http://host/#c":              "http://host/chat",
	} {
		if got := JoinURL(base, "/chat"); got != want {
			t.Errorf("%s: got %s, want %s", base, got, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			name, value string
			want        time.Duration
			asked       bool
		}{
			{"Retry-After", "", 0, false}, {"Retry-After", "soon", 0, false}, {"Retry-After", "0", 0, true},
			{"Retry-After", "1.5", 1500 * time.Millisecond, true}, {"Retry-After", "1e300", 1e9 * time.Second, true},
			{"Retry-After-Ms", "20", 20 * time.Millisecond, true}, {"Retry-After-Ms", "1e300", 1e12 * time.Millisecond, true},
			{"Retry-After", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat), time.Minute, true},
		} {
			if got, asked := retryAfter(http.Header{tt.name: {tt.value}}); got != tt.want || asked != tt.asked {
				t.Errorf("%s %s: got %v %v, want %v %v", tt.name, tt.value, got, asked, tt.want, tt.asked)
			}
		}
	})
}

// The delays double up to a limit. Each is shortened at random, by at most a quarter.
func TestDelay(t *testing.T) {
	for attempt, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second} {
		if got := (&failure{}).delayAfter(attempt); got > want || got <= want*3/4-1 {
			t.Errorf("attempt %d: got %v, want %v less up to a quarter", attempt, got, want)
		}
	}
	if got := (&failure{}).delayAfter(1000); got > maxBackoff || got < maxBackoff/2 {
		t.Errorf("attempt 1000: got %v", got)
	}
	if got := (&failure{asked: true, after: -time.Second}).delayAfter(3); got != 0 {
		t.Errorf("a time in the past: got %v", got)
	}
}

// roundTrip answers without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answering returns a client of a server that answers with body.
func answering(status int, body io.Reader) *Client {
	return &Client{
		URL: "http://host/chat?k=v", Header: http.Header{"X-Key": {"hush"}}, Place: "here", Kind: "chats", Advice: "look", Retries: 4,
		Mask: func(s string) string { return strings.ReplaceAll(s, "hush", "****") }, EventsOf: func([]byte) []byte { return nil },
		HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{"X-Request-Id": {"r1"}}, Body: io.NopCloser(body)}, nil
		})},
	}
}

// ignoreNotice is a notify function that lets the request continue.
func ignoreNotice(string) bool { return true }

// Text other than JSON is also found after a long stream.
func TestNotJSON(t *testing.T) {
	event := "data: {\"a\":\"" + strings.Repeat("b", 1000) + "\"}\n\n"
	s, err := answering(200, strings.NewReader(strings.Repeat(event, 1000)+"data: {\"error\": oops hush}\n\ndata: [DONE]\n\n")).Post(t.Context(), nil, ignoreNotice)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var v struct{ A string }
	for n := 0; ; n++ {
		event, err := s.Next()
		if err != nil {
			t.Fatal(err)
		}
		if err = s.Decode(event.Data, &v); err == nil {
			continue
		}
		if want := "here sent text other than JSON in its stream (it begins: {\"error\": oops ****}): try again, and if it fails again, look"; err.Error() != want || n != 1000 {
			t.Errorf("event %d: got %v, want %s", n, err, want)
		}
		break
	}
	if len(s.source.head) != maxHead || len(v.A) != 1000 {
		t.Errorf("%d bytes of the head are kept, the last event has %d", len(s.source.head), len(v.A))
	}
}

// A member of another type than the reader wants does not spoil the others.
func TestDecodeOtherTypes(t *testing.T) {
	var v struct {
		A string
		B struct{ N int }
		C *string
	}
	if err := (&Stream{}).Decode([]byte(`{"A":{"x":1},"B":{"N":"one"},"C":"c"}`), &v); err != nil || v.A != "" || v.B.N != 0 || v.C == nil || *v.C != "c" {
		t.Errorf("got %+v, %v", v, err)
	}
}

// Next returns io.EOF at the end of the answer, even in the middle of an event, and another error
// if the connection breaks.
func TestEndOfStream(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("data: 1\n\ndata: 2\n"), failingReader{io.ErrUnexpectedEOF})
	for _, tt := range []struct {
		body io.Reader
		want error
	}{
		{strings.NewReader("data: 1\n\n"), io.EOF}, {strings.NewReader(": hello\n\ndata: 1\n\ndata: 2\n"), io.EOF}, {broken, io.ErrUnexpectedEOF},
	} {
		s, err := answering(200, tt.body).Post(t.Context(), nil, ignoreNotice)
		if err != nil {
			t.Fatal(err)
		}
		event, err := s.Next()
		if err != nil || string(event.Data) != "1" {
			t.Errorf("got %s, %v", event.Data, err)
		}
		if _, err := s.Next(); err != tt.want {
			t.Errorf("got %v, want %v", err, tt.want)
		}
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// A refusal keeps no secret, and its fields say what the header and the body say.
func TestRefused(t *testing.T) {
	_, err := answering(400, strings.NewReader(`{"error":{"message":"no hush","type":"invalid","code":7}}`)).Post(t.Context(), nil, ignoreNotice)
	var refused *ProviderError
	if !errors.As(err, &refused) || *refused != (ProviderError{Status: 400, Type: "invalid", Code: "7", Message: "no ****", RequestID: "r1"}) {
		t.Errorf("got %+v", err)
	}
	if got := fmt.Sprint(refused, refused.Suffix()); got != "400 invalid, request r1 (it says: no ****)" {
		t.Error(got)
	}
}

// Each attempt sends the whole request, and the context ends the wait between two.
func TestAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, sent := answering(503, nil), ""
		ctx, cancel := context.WithCancel(t.Context())
		c.HTTP.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			sent += fmt.Sprintln(r.Method, r.URL, r.Header.Get("X-Key"), r.Header.Get("Content-Type"), string(body), err)
			return &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"60"}}, Body: http.NoBody}, nil
		})
		told := []string(nil)
		time.AfterFunc(90*time.Second, cancel)
		began := time.Now()
		_, err := c.Post(ctx, []byte("body"), func(text string) bool { told = append(told, text); return true })
		if !errors.Is(err, context.Canceled) || time.Since(began) != 90*time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		if want := strings.Repeat("POST http://host/chat?k=v hush application/json body <nil>\n", 2); sent != want {
			t.Errorf("sent %s", sent)
		}
		if len(told) != 1 || told[0] != "here is busy (503); trying again in 60 s" {
			t.Errorf("told %q", told)
		}
	})
}

// startsStream accepts any prefix of an event stream, with any field.
func TestStartsStream(t *testing.T) {
	for head, want := range map[string]bool{
		"d": true, "data: {}": true, "\ufeffevent: a": true, "\n\n": true, ": hello": true, "id:1": true, "retry": true,
		"<html>": false, "{": false, "dat a": false, "hello": false,
	} {
		if startsStream([]byte(head)) != want {
			t.Errorf("%q: want %v", head, want)
		}
	}
}
