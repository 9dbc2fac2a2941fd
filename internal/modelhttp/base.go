package modelhttp

import (
	"net/url"
	"strings"
)

// BaseURL is a URL without the ends that a client adds itself, and without a slash before them. Its query stays.
func BaseURL(raw string, ends ...string) string {
	path, query := raw, ""
	if i := strings.IndexAny(raw, "?#"); i >= 0 {
		path, query = raw[:i], raw[i:]
	}
	for _, end := range ends {
		if rest, found := strings.CutSuffix(strings.TrimRight(path, "/"), end); found {
			path = rest
		}
	}
	return path + query
}

// Query is the query of a URL, each value as the option of an SDK that adds it to a request.
func Query[Option any](base string, add func(name, value string) Option) (options []Option) {
	u, err := url.Parse(base)
	if err != nil { // the SDKs say so
		return nil
	}
	for name, values := range u.Query() {
		for _, value := range values {
			options = append(options, add(name, value))
		}
	}
	return options
}
