package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
)

// NewHTTPClient returns a client for registries and downloads. It follows at most five redirects,
// none from https to http, and uses http for loopback addresses only.
func NewHTTPClient() *http.Client {
	return &http.Client{
		Transport: http.DefaultTransport,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 5 {
				return errors.New("more than five redirects")
			}
			return CheckURL(r.URL)
		},
	}
}

// CheckURL returns an error unless a URL is safe to download from: https, or http on this machine.
func CheckURL(u *url.URL) error {
	if u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !httpwire.IsLoopbackHost(u.Hostname())) {
		return fmt.Errorf("%s is not an https URL", u.Redacted())
	}
	return nil
}

// idleLimit bounds the time without a byte of a download.
const idleLimit = 30 * time.Second

// DigestError says that a file does not have the expected digest.
type DigestError struct{ What, Want, Got string }

// Error implements error.
func (e *DigestError) Error() string {
	return fmt.Sprintf("%s has the SHA-256 digest %s, but the registry says %s: it was changed after it was published. Nothing was installed", e.What, e.Got, e.Want)
}

// Download writes a file of at most limit bytes to w and checks its digest in hexadecimal digits;
// "" checks none. progress, which may be nil, is called with the number of bytes so far and of all
// bytes, or -1 if that is unknown.
func Download(ctx context.Context, client *http.Client, address, digest string, limit int64, w io.Writer, progress func(n, all int64)) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("%q is no URL", address)
	}
	if err := CheckURL(u); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(idleLimit, func() { cancel(fmt.Errorf("%s sends nothing for %v", u.Host, idleLimit)) })
	defer idle.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("%s cannot be downloaded: %w", address, errors.Join(context.Cause(ctx), httpwire.WithoutURL(err)))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s cannot be downloaded: %s", address, resp.Status)
	}
	sum := sha256.New()
	var n int64
	from := io.TeeReader(io.LimitReader(resp.Body, limit+1), sum)
	buf := make([]byte, 64<<10)
	for {
		k, err := from.Read(buf)
		idle.Reset(idleLimit)
		if n += int64(k); n > limit {
			return fmt.Errorf("%s is larger than %d MiB", address, limit>>20)
		}
		if _, err := w.Write(buf[:k]); err != nil {
			return err
		}
		if progress != nil {
			progress(n, resp.ContentLength)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("%s cannot be downloaded: %w", address, errors.Join(context.Cause(ctx), err))
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); digest != "" && got != digest {
		return &DigestError{address, digest, got}
	}
	return nil
}
