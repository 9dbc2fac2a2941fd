package published

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/config/leftovers"
	"github.com/dowel-mcp/dowel/internal/install"
	"github.com/dowel-mcp/dowel/internal/install/bundle"
	"github.com/dowel-mcp/dowel/internal/install/registry"
)

// isBundle reports whether a word is a file or URL of an MCPB bundle. DXT is its former name.
func isBundle(word string) bool {
	path, _, _ := strings.Cut(word, "?")
	return strings.HasSuffix(path, ".mcpb") || strings.HasSuffix(path, ".dxt")
}

// addBundleAt adds the server of a bundle in a file or at a URL.
func (a *addition) addBundleAt(ctx context.Context, word string) (*Server, error) {
	if !strings.Contains(word, "://") {
		return a.addBundle(ctx, word, nil)
	}
	return a.addDownload(ctx, word, "", []string{"from " + word + ", without a digest to check it"})
}

// addPublishedBundle adds the server of a bundle that the registry names, with its digest.
func (a *addition) addPublishedBundle(ctx context.Context, way *registry.Way) (*Server, error) {
	p := way.Package
	return a.addDownload(ctx, p.Identifier, p.SHA256, append(slices.Clone(way.About), "from "+p.Identifier+", with the digest that the registry names"))
}

// addDownload adds the server of the bundle at a URL. The file is removed after it was unpacked.
func (a *addition) addDownload(ctx context.Context, address, digest string, about []string) (*Server, error) {
	path, err := a.download(ctx, address, digest)
	if err != nil {
		return nil, err
	}
	n, err := a.addBundle(ctx, path, about)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	n.temporary = path
	return n, nil
}

// download stores a bundle in a temporary file and shows the progress.
func (a *addition) download(ctx context.Context, address, digest string) (path string, err error) {
	temp, err := os.CreateTemp("", "dowel-*.mcpb")
	if err != nil {
		return "", err
	}
	defer func() {
		err = errors.Join(err, temp.Close())
		if err != nil {
			_ = os.Remove(temp.Name())
		}
	}()
	progress := func(n, all int64) {}
	if a.f.Stderr.IsTerminal() && !a.f.JSON {
		shown := int64(-1)
		progress = func(n, all int64) {
			if n>>20 == shown {
				return
			}
			shown = n >> 20
			text := fmt.Sprintf("%d MiB", n>>20)
			if all > 0 {
				text += fmt.Sprintf(" of %d MiB", all>>20)
			}
			fmt.Fprintf(a.f.Stderr, "\r\x1b[Kdownloading %s: %s", address, text)
		}
		defer fmt.Fprint(a.f.Stderr, "\r\x1b[K")
	}
	return temp.Name(), install.Download(ctx, install.NewHTTPClient(), address, digest, bundle.MaxFile, temp, progress)
}

// addBundle adds the server of a bundle in a file. about replaces the bundle's own first lines.
func (a *addition) addBundle(ctx context.Context, path string, about []string) (*Server, error) {
	b, err := bundle.Open(path)
	if err != nil {
		return nil, exit.UsageError{Err: err}
	}
	defer b.Close()
	root, err := leftovers.BundlesFolder()
	if err != nil {
		return nil, err
	}
	folder, err := b.Folder(root)
	if err != nil {
		return nil, err
	}
	p := b.Manifest.Plan(folder)
	p.About = append(p.About, about...)
	n, err := a.addPlan(ctx, &p, nil)
	if err != nil || a.dry {
		return n, err
	}
	n.Unpack = func() error {
		again, err := bundle.Open(path)
		if err != nil {
			return err
		}
		defer again.Close()
		got, err := again.Install(ctx, root)
		if err == nil && got != folder {
			err = fmt.Errorf("%s was changed while dowel asked: nothing was added", path)
		}
		return err
	}
	return n, nil
}
