package modelhttp

import (
	"net/url"
	"strings"
)

// BaseURL returns raw without the path endings that a provider adds itself, in the order given,
// and without the slash before them. The query stays.
func BaseURL(raw string, endings ...string) string {
	path, query := splitQuery(raw)
	for _, ending := range endings {
		if rest, found := strings.CutSuffix(strings.TrimRight(path, "/"), ending); found {
			path = rest
		}
	}
	return path + query
}

// JoinURL adds path, which begins with a slash, to the path of base. The query stays, in the order
// of its names. The fragment, which HTTP does not send, goes.
func JoinURL(base, path string) string {
	before, query := splitQuery(base)
	joined := strings.TrimRight(before, "/") + path
	u, err := url.Parse(query)
	if err != nil || u.RawQuery == "" {
		return joined
	}
	return joined + "?" + u.Query().Encode()
}

// splitQuery cuts raw in front of its query or fragment.
func splitQuery(raw string) (path, query string) {
	if i := strings.IndexAny(raw, "?#"); i >= 0 {
		return raw[:i], raw[i:]
	}
	return raw, ""
}
