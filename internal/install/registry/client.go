// Package registry finds servers in the official MCP registry, or in another one with the same API
// (/v0.1/servers), and plans how to run them.
package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/httpwire"
)

// Official is the address of the official registry.
const Official = "https://registry.modelcontextprotocol.io"

const (
	maxAnswer   = 8 << 20          // bytes
	cacheFresh  = 10 * time.Minute // an answer of this age is used without a request
	pageSize    = 100              // the registry's limit
	maxPages    = 20
	maxListings = 1000
	// answerTimeout bounds a request to a registry, with its answer.
	answerTimeout = 30 * time.Second
)

var errSlow = fmt.Errorf("it did not answer within %v", answerTimeout)

// Client asks a registry. Its methods may be called concurrently.
type Client struct {
	// Base is the registry's URL, without /v0.1.
	Base string
	// Folder keeps answers. Empty keeps none.
	Folder string
	// HTTP makes the requests; see [install.NewHTTPClient].
	HTTP *http.Client
	// Stale is called if the registry cannot be reached and an older answer is used. It may be nil.
	Stale func(age time.Duration, err error)
}

// ErrUnknown is the error for a server or version that the registry does not have.
var ErrUnknown = errors.New("the registry has no such server")

// UnreachableError says that a registry could not be asked.
type UnreachableError struct {
	Base string
	Err  error
}

// Error implements error.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the registry %s cannot be reached: %v", e.Base, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// entryJSON is an entry as the registry writes it.
type entryJSON struct {
	Server json.RawMessage `json:"server"`
	Meta   struct {
		Official struct {
			Status        string `json:"status"`
			StatusMessage string `json:"statusMessage"`
		} `json:"io.modelcontextprotocol.registry/official"`
	} `json:"_meta"`
}

func (j *entryJSON) parse() (Entry, error) {
	e, err := Parse(j.Server)
	o := j.Meta.Official
	e.Status, e.StatusMessage = o.Status, o.StatusMessage
	return e, err
}

// Search returns the latest versions of at most limit servers that have all words in their name,
// title or description. The registry finds names with the first word; Search checks the rest. more
// says that there may be others.
func (c *Client) Search(ctx context.Context, words []string, limit int) (found []Entry, more bool, err error) {
	limit = min(limit, maxListings)
	query := url.Values{"version": {"latest"}, "limit": {strconv.Itoa(pageSize)}}
	if len(words) > 0 {
		query.Set("search", words[0])
	}
	for range maxPages {
		var page struct {
			Servers  []json.RawMessage `json:"servers"`
			Metadata struct {
				NextCursor string `json:"nextCursor"`
			} `json:"metadata"`
		}
		if err := c.get(ctx, "/v0.1/servers?"+query.Encode(), &page); err != nil {
			return nil, false, err
		}
		for _, raw := range page.Servers {
			var j entryJSON
			if json.Unmarshal(raw, &j) != nil {
				continue // an entry that cannot be used must not hide the others
			}
			e, err := j.parse()
			if err != nil || e.Status == "deleted" || !e.Server.matches(words) {
				continue
			}
			if len(found) == limit {
				return found, true, nil
			}
			found = append(found, e)
		}
		if page.Metadata.NextCursor == "" {
			return found, false, nil
		}
		query.Set("cursor", page.Metadata.NextCursor)
	}
	return found, true, nil
}

func (s *Server) matches(words []string) bool {
	text := strings.ToLower(s.Name + "\n" + s.Title + "\n" + s.Description)
	for _, word := range words {
		if !strings.Contains(text, strings.ToLower(word)) {
			return false
		}
	}
	return true
}

// Get returns a version of a server; "" means the latest one.
func (c *Client) Get(ctx context.Context, name, version string) (Entry, error) {
	if version == "" {
		version = "latest"
	}
	var j entryJSON
	err := c.get(ctx, "/v0.1/servers/"+url.PathEscape(name)+"/versions/"+url.PathEscape(version), &j)
	if err != nil {
		return Entry{}, err
	}
	e, err := j.parse()
	if err != nil {
		return e, fmt.Errorf("the registry's answer cannot be used: %w", err)
	}
	if e.Server.Name != name {
		return e, fmt.Errorf("the registry answered with the server %q, not %q", e.Server.Name, name)
	}
	return e, nil
}

// get decodes the answer for a path, from the cache if it is fresh.
func (c *Client) get(ctx context.Context, path string, into any) error {
	address := strings.TrimSuffix(c.Base, "/") + path
	kept, age := c.loadAnswer(address)
	if kept != nil && age < cacheFresh && json.Unmarshal(kept, into) == nil {
		return nil
	}
	text, err := c.request(ctx, address)
	var unreachable *UnreachableError
	if errors.As(err, &unreachable) && kept != nil && ctx.Err() == nil && json.Unmarshal(kept, into) == nil {
		if c.Stale != nil {
			c.Stale(age, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s is no MCP registry: its answer to %s is no JSON as expected: %w", c.Base, path, err)
	}
	c.saveAnswer(address, text)
	return nil
}

func (c *Client) request(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errSlow)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.HTTP.Do(req)
	if err != nil {
		if context.Cause(ctx) == errSlow {
			err = errSlow
		}
		return nil, &UnreachableError{c.Base, httpwire.WithoutURL(err)}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, &UnreachableError{c.Base, err}
	case resp.StatusCode == http.StatusNotFound && json.Valid(text):
		return nil, ErrUnknown
	case resp.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("%s is no MCP registry: it has no %s", c.Base, req.URL.Path)
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		return nil, &UnreachableError{c.Base, errors.New(resp.Status)}
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the registry %s refuses the request: %s", c.Base, resp.Status)
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("the answer of the registry %s is larger than %d MiB", c.Base, maxAnswer>>20)
	}
	return text, nil
}

func (c *Client) cachePath(address string) string {
	sum := sha256.Sum256([]byte(address))
	return filepath.Join(c.Folder, hex.EncodeToString(sum[:])+".json")
}

// loadAnswer returns the kept answer for an address and its age, or nil.
func (c *Client) loadAnswer(address string) ([]byte, time.Duration) {
	if c.Folder == "" {
		return nil, 0
	}
	path := c.cachePath(address)
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxAnswer {
		return nil, 0
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, 0
	}
	return text, max(0, time.Since(info.ModTime()))
}

// saveAnswer ignores errors: the registry is asked again then.
func (c *Client) saveAnswer(address string, text []byte) {
	if c.Folder == "" {
		return
	}
	path := c.cachePath(address)
	_, err := atomicfile.Update(path, func([]byte, bool) ([]byte, error) { return text, nil }, atomicfile.Options{Perm: 0o600, FolderPerm: 0o700})
	if err == nil {
		_ = os.Chtimes(path, time.Time{}, time.Now()) // an unchanged file is not written
	}
}
