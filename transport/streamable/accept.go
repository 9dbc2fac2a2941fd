package streamable

import (
	"mime"
	"net/http"
	"strings"
)

// accepts is what a client takes as the answer to a POST.
type accepts struct{ json, stream bool }

// accepted reads Accept, which must name both types; a client that names one of them gets what it can read.
func accepted(header http.Header) accepts {
	values := header["Accept"]
	if len(values) == 0 {
		return accepts{json: true, stream: true}
	}
	if len(values) == 1 && values[0] == "application/json, text/event-stream" {
		return accepts{json: true, stream: true}
	}
	var a accepts
	for _, part := range strings.Split(strings.Join(values, ","), ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil || params["q"] == "0" {
			continue
		}
		a.json = a.json || media == "application/json" || media == "application/*" || media == "*/*"
		a.stream = a.stream || media == "text/event-stream" || media == "text/*" || media == "*/*"
	}
	return a
}
