package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/install"
)

// maxTarball bounds the file of an npm package in bytes.
const maxTarball = 256 << 20

// CheckNPM returns an error unless the file of an npm package has the digest of the registry's
// document. npx downloads the file again later; npm's registry does not change published versions.
func CheckNPM(ctx context.Context, client *http.Client, p Package) error {
	base := strings.TrimSuffix(cmp.Or(p.BaseURL, "https://registry.npmjs.org"), "/")
	address := base + "/" + strings.Replace(p.Identifier, "/", "%2F", 1) + "/" + url.PathEscape(p.Version)
	u, err := url.Parse(address)
	if err == nil {
		err = install.CheckURL(u)
	}
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeoutCause(ctx, answerTimeout, errSlow)
	defer cancel()
	req, err := http.NewRequestWithContext(asking, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("the digest of %s cannot be checked: %w", p.Identifier, httpwire.WithoutURL(err))
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	var version struct {
		Dist struct {
			Tarball string `json:"tarball"`
		} `json:"dist"`
	}
	if err == nil {
		err = json.Unmarshal(text, &version)
	}
	if err == nil && version.Dist.Tarball == "" {
		err = errors.New("npm's registry names no file")
	}
	if err != nil {
		return fmt.Errorf("the digest of %s@%s cannot be checked: %w", p.Identifier, p.Version, err)
	}
	return install.Download(ctx, client, version.Dist.Tarball, p.SHA256, maxTarball, io.Discard, nil)
}
