package secretmask

import (
	"net/url"
	"strings"
)

// URL returns raw without its user, query values and fragment. raw may be malformed. A URL without
// secrets is returned unchanged.
func URL(raw string) string {
	before, user, host, query := splitURL(raw)
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

// splitURL splits a URL into the scheme with ://, the part before @, host and path, and the query.
func splitURL(raw string) (before, user, host, query string) {
	raw, _, _ = strings.Cut(raw, "#")
	if i := strings.Index(raw, "://"); i >= 0 {
		before, raw = raw[:i+3], raw[i+3:]
	}
	raw, query, _ = strings.Cut(raw, "?")
	end := strings.IndexByte(raw, '/')
	if _, err := url.Parse(before + raw); err != nil || end < 0 {
		end = len(raw) // a password that contains / may be the reason that the URL is malformed
	}
	if at := strings.LastIndexByte(raw[:end], '@'); at >= 0 {
		user, raw = raw[:at], raw[at+1:]
	}
	return before, user, raw, query
}

// ModelError returns an error that wraps err, with the secrets of the URL raw of a model and the
// keys hidden in its text. It returns err itself if the text holds no secrets, and nil for nil.
func ModelError(err error, raw string, keys ...string) error {
	if err == nil {
		return nil
	}
	text := ModelText(err.Error(), raw, keys...)
	if text == err.Error() {
		return err
	}
	return &maskedError{text, err}
}

// ModelText hides the secrets of the URL raw of a model and the keys in a text. A long key keeps
// its last four characters, by which its owner recognises it. Keys under eight bytes are not
// hidden: they are placeholders for servers without keys, such as "ollama" or "none".
func ModelText(text, raw string, keys ...string) string {
	var pairs []string
	for _, key := range keys {
		if len(key) >= shortestKey {
			pairs = append(pairs, maskForms(key, maskedKey(key))...)
		}
	}
	if URL(raw) != raw {
		pairs = append(pairs, urlPairs(raw)...)
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

type maskedError struct {
	text string
	err  error
}

func (h *maskedError) Error() string { return h.text }
func (h *maskedError) Unwrap() error { return h.err }

// Lengths of secrets in bytes: the shortest secret that is replaced on its own (shorter ones occur
// everywhere), the shortest key, and the shortest key that shows its end.
const (
	shortest    = 4
	shortestKey = 8
	longKey     = 20
)

// maskForms returns pairs for a replacer: each written form of a secret, and mask.
func maskForms(secret, mask string) (pairs []string) {
	for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
		if len(form) >= shortest {
			pairs = append(pairs, form, mask)
		}
	}
	return pairs
}

// urlPairs returns pairs for a replacer: the secrets of a URL, and their replacements.
func urlPairs(raw string) []string {
	pairs := []string{raw, URL(raw)}
	hide := func(secret string) {
		pairs = append(pairs, maskForms(secret, Mask)...)
		if decoded, err := url.PathUnescape(secret); err == nil {
			pairs = append(pairs, maskForms(decoded, Mask)...)
		}
	}
	_, user, _, query := splitURL(raw)
	name, password, _ := strings.Cut(user, ":")
	if user != "" {
		pairs = append(pairs, user+"@", Mask+"@", name+":***@", Mask+"@") // net/http writes the user as name:***@
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
