// Package urlmask hides the secrets that a URL holds where it is shown or kept: who logs in, and the values of its query.
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

// Error hides the secrets of a URL in the text of an error, which it wraps.
func Error(err error, raw string) error {
	if err == nil || URL(raw) == raw {
		return err
	}
	text := replacer(raw).Replace(err.Error())
	if text == err.Error() {
		return err
	}
	return &hidden{text, err}
}

type hidden struct {
	text string
	err  error
}

func (h *hidden) Error() string { return h.text }
func (h *hidden) Unwrap() error { return h.err }

// shortest is how long a secret is at least that is looked for by itself: "1" is everywhere.
const shortest = 4

func replacer(raw string) *strings.Replacer {
	pairs := []string{raw, URL(raw)}
	hide := func(secret string) {
		decoded, err := url.PathUnescape(secret)
		if err != nil {
			decoded = secret
		}
		for _, form := range []string{secret, decoded, url.QueryEscape(decoded), url.PathEscape(decoded)} {
			if len(form) >= shortest {
				pairs = append(pairs, form, Mask)
			}
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
	return strings.NewReplacer(pairs...)
}
