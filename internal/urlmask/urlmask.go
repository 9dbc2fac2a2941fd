// Package urlmask hides secrets where they would be shown or kept: those that a URL holds, which are who logs in and the values of its
// query, and keys that go with requests to it.
package urlmask

import (
	"net/url"
	"strings"
)

// Mask stands in the place of a secret.
const Mask = "****"

// URL is a URL without what stands before its host, without the values of its query, and without its fragment. It takes what is no
// URL as well, and returns those that hold no secrets as they are.
func URL(raw string) string {
	before, user, host, query := split(raw)
	text := before
	if user != "" {
		text += Mask + "@"
	}
	text += host
	if query == "" {
		return text
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		key, value, valued := strings.Cut(part, "=")
		switch {
		case valued && value != "":
			parts[i] = key + "=" + Mask
		case !valued && part != "":
			parts[i] = Mask
		}
	}
	return text + "?" + strings.Join(parts, "&")
}

// split takes a URL apart: its scheme with ://, what stands before @, host and path, and the query.
func split(raw string) (before, user, host, query string) {
	raw, _, _ = strings.Cut(raw, "#")
	if i := strings.Index(raw, "://"); i >= 0 {
		before, raw = raw[:i+3], raw[i+3:]
	}
	raw, query, _ = strings.Cut(raw, "?")
	end := strings.IndexByte(raw, '/')
	if _, err := url.Parse(before + raw); err != nil || end < 0 {
		end = len(raw) // a password with / may be why it is no URL
	}
	if at := strings.LastIndexByte(raw[:end], '@'); at >= 0 {
		user, raw = raw[:at], raw[at+1:]
	}
	return before, user, raw, query
}

// Error hides the secrets of a URL, and keys, in the text of an error, which it wraps.
func Error(err error, raw string, keys ...string) error {
	if err == nil {
		return nil
	}
	text := Text(err.Error(), raw, keys...)
	if text == err.Error() {
		return err
	}
	return &hidden{text, err}
}

// Text hides the secrets of a URL, and keys, in a text. Of a long key the last four characters stay, by which its owner knows it. Those
// of less than eight stand for no key where none is needed, as "ollama" or "none" do, and are left.
func Text(text, raw string, keys ...string) string {
	var pairs []string
	for _, key := range keys {
		if len(key) >= shortestKey {
			pairs = append(pairs, forms(key, maskedKey(key))...)
		}
	}
	if URL(raw) != raw {
		pairs = append(pairs, pairsOf(raw)...)
	}
	if len(pairs) == 0 {
		return text
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func maskedKey(key string) string {
	if len(key) < longKey {
		return Mask
	}
	return Mask + key[len(key)-4:]
}

type hidden struct {
	text string
	err  error
}

func (h *hidden) Error() string { return h.text }
func (h *hidden) Unwrap() error { return h.err }

// Lengths of secrets, in bytes: the shortest that is looked for by itself, as "1" is everywhere, the shortest key, and the shortest
// that shows its end.
const (
	shortest    = 4
	shortestKey = 8
	longKey     = 20
)

// forms are a secret as it may be written, each with what stands in its place.
func forms(secret, mask string) (pairs []string) {
	for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
		if len(form) >= shortest {
			pairs = append(pairs, form, mask)
		}
	}
	return pairs
}

// pairsOf are the secrets of a URL, each with what stands in its place.
func pairsOf(raw string) []string {
	pairs := []string{raw, URL(raw)}
	hide := func(secret string) {
		pairs = append(pairs, forms(secret, Mask)...)
		if decoded, err := url.PathUnescape(secret); err == nil {
			pairs = append(pairs, forms(decoded, Mask)...)
		}
	}
	_, user, _, query := split(raw)
	name, password, _ := strings.Cut(user, ":")
	if user != "" {
		pairs = append(pairs, user+"@", Mask+"@", name+":***@", Mask+"@") // the latter is how net/http writes it
	}
	hide(password)
	hide(name)
	for part := range strings.SplitSeq(query, "&") {
		key, value, valued := strings.Cut(part, "=")
		if !valued {
			hide(key)
			continue
		}
		if value != "" {
			pairs = append(pairs, part, key+"="+Mask)
		}
		hide(value)
	}
	return pairs
}
