package github

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v88/github"
)

// DefaultPoll is the default of [Options.Poll].
const DefaultPoll = time.Minute

// secondaryPause is the pause after a refusal that names no time.
const secondaryPause = time.Minute

// absentState is the state of a file that does not exist.
const absentState = "absent"

// maxTags bounds the ETags that are kept. All are dropped when there are more.
const maxTags = 128

// readState returns the SHA of a file, or a digest of the answer without a SHA. The ETag says too
// little: it changes with the temporary token in the answer for a private file. The API answers a
// request with the current ETag without a body, and does not count it if the request has a token.
func (s *Server) readState(ctx context.Context, uri, known string) (string, error) {
	path, err := contentsPath(uri)
	if err != nil {
		return "", err
	}
	request, err := s.api.NewRequest(ctx, http.MethodGet, path, nil)
	if err != nil {
		return "", err
	}
	if tag := s.tags.find(uri, known); tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	var body bytes.Buffer
	response, err := s.api.Do(request, &body)
	s.spareLimit(response, err)
	if failed, ok := errors.AsType[*github.ErrorResponse](err); ok {
		switch failed.Response.StatusCode {
		case http.StatusNotModified:
			return known, nil
		case http.StatusNotFound:
			return absentState, nil
		}
	}
	if err != nil {
		return "", err
	}
	var file struct {
		SHA string `json:"sha"`
	}
	state := fmt.Sprintf("%x", sha256.Sum256(body.Bytes()))
	if err := json.Unmarshal(body.Bytes(), &file); err == nil && file.SHA != "" {
		state = file.SHA
	}
	s.tags.keep(uri, state, response.Header.Get("ETag"))
	return state, nil
}

// tagCache keeps the ETag of each file's last answer. The zero value is empty.
type tagCache struct {
	mu  sync.Mutex
	all map[string]taggedState // by URI
}

type taggedState struct{ state, tag string }

// find returns the ETag of the last answer for a file, or "" if that had another state.
func (c *tagCache) find(uri, state string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.all[uri]; found.state == state {
		return found.tag
	}
	return ""
}

func (c *tagCache) keep(uri, state, tag string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= maxTags {
		c.all = map[string]taggedState{}
	}
	c.all[uri] = taggedState{state, tag}
}

// spareLimit stops the polling until the rate limit begins anew when half of it is used up. The
// other half is for the tools.
func (s *Server) spareLimit(response *github.Response, err error) {
	if refused, ok := errors.AsType[*github.AbuseRateLimitError](err); ok {
		pause := refused.GetRetryAfter()
		if pause <= 0 {
			pause = secondaryPause
		}
		s.poller.Pause(time.Now().Add(pause))
	}
	if response == nil {
		return
	}
	if rate := response.Rate; rate.Limit > 0 && rate.Remaining <= rate.Limit/2 {
		s.poller.Pause(rate.Reset.Time)
	}
}

// contentsPath returns the path in the API of a file with this URI.
func contentsPath(uri string) (string, error) {
	parsed, err := url.Parse(uri)
	if err != nil {
		return "", err
	}
	parts := strings.SplitN(strings.TrimPrefix(parsed.EscapedPath(), "/"), "/", 3)
	if parsed.Scheme != "github" || parsed.Host != "" || parsed.RawQuery != "" || len(parts) != 3 || parts[2] == "" ||
		!isName(parts[0]) || !isName(parts[1]) || hasDots(parsed.Path) {
		return "", fmt.Errorf("%s is not the URI of a file", uri)
	}
	return "repos/" + parts[0] + "/" + parts[1] + "/contents/" + parts[2], nil
}

// hasDots reports whether a path has a segment "." or "..".
func hasDots(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}
