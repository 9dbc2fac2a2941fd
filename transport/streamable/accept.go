package streamable

import (
	"mime"
	"net/http"
	"strings"
)

// acceptedTypes is what a client takes as the answer to a POST.
type acceptedTypes struct{ json, stream bool }

// parseAccept reads Accept, which must name both types; a client that names one of them gets what it can read.
func parseAccept(header http.Header) acceptedTypes {
	values := header["Accept"]
	if len(values) == 0 {
		return acceptedTypes{json: true, stream: true}
	}
	if len(values) == 1 && values[0] == "application/json, text/event-stream" {
		return acceptedTypes{json: true, stream: true}
	}
	var a acceptedTypes
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
