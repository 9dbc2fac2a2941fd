// Package bundle installs MCPB bundles: ZIP files with a manifest.json and a server with all its
// dependencies. It bounds what a bundle can do to the user's disk, and writes only below the
// bundle's folder. Signatures of bundles are not checked.
package bundle

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dowel-mcp/dowel/internal/wirename"
)

// Bounds of a bundle.
const (
	MaxFile     = 512 << 20 // bytes of the ZIP file
	maxUnpacked = 2 << 30   // bytes of all files
	maxEntries  = 100_000
	maxManifest = 1 << 20 // bytes
)

// Bundle is an open bundle. Close it.
type Bundle struct {
	Manifest Manifest
	file     *os.File
	zip      *zip.Reader
}

// Open opens a bundle and checks all names in it before anything is written.
func Open(path string) (*Bundle, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := openBundle(f)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("the bundle %s cannot be used: %w", path, err)
	}
	return b, nil
}

func openBundle(f *os.File) (*Bundle, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case info.Size() > MaxFile:
		return nil, fmt.Errorf("it is larger than %d MiB", MaxFile>>20)
	}
	z, err := zip.NewReader(f, info.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, fmt.Errorf("it is no ZIP file: %w", err)
	}
	if err := checkEntries(z.File); err != nil {
		return nil, err
	}
	b := &Bundle{file: f, zip: z}
	text, err := b.readManifest()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &b.Manifest); err != nil {
		return nil, fmt.Errorf("its manifest.json is malformed: %w", err)
	}
	return b, b.Manifest.checkManifest()
}

// checkEntries refuses a bundle with too many or too large files, links, special files, or names
// that lie outside the folder of the bundle or stand for the same file.
func checkEntries(files []*zip.File) error {
	if len(files) > maxEntries {
		return fmt.Errorf("it has %d entries, at most %d are allowed", len(files), maxEntries)
	}
	seen := map[string]bool{}
	var total uint64
	for _, f := range files {
		name := strings.TrimSuffix(f.Name, "/")
		kind := f.Mode().Type()
		switch {
		case !filepath.IsLocal(name) || strings.ContainsAny(name, `\:`) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
			return fmt.Errorf("its entry %q is outside the bundle's folder, or not portable", f.Name)
		case kind == fs.ModeSymlink:
			return fmt.Errorf("its entry %q is a link", f.Name)
		case kind != 0 && kind != fs.ModeDir:
			return fmt.Errorf("its entry %q is neither a file nor a folder", f.Name)
		}
		key := strings.ToLower(filepath.Clean(name)) // as file systems that ignore case see it
		if seen[key] && kind != fs.ModeDir {
			return fmt.Errorf("its entry %q is there twice", f.Name)
		}
		seen[key] = true
		if total += f.UncompressedSize64; total > maxUnpacked || f.UncompressedSize64 > maxUnpacked {
			return fmt.Errorf("its files have more than %d MiB", maxUnpacked>>20)
		}
	}
	return nil
}

func (b *Bundle) readManifest() ([]byte, error) {
	f, err := b.zip.Open("manifest.json")
	if err != nil {
		return nil, errors.New("it has no manifest.json")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err == nil && len(text) > maxManifest {
		err = fmt.Errorf("its manifest.json is larger than %d KiB", maxManifest>>10)
	}
	return text, err
}

// digest returns the SHA-256 digest of the bundle's file in hexadecimal digits.
func (b *Bundle) digest() (string, error) {
	sum := sha256.New()
	if _, err := b.file.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	_, err := io.Copy(sum, b.file)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// Folder returns the folder below root into which [Bundle.Install] unpacks the bundle. The name has
// the digest, so that two versions never share a folder.
func (b *Bundle) Folder(root string) (string, error) {
	sum, err := b.digest()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, wirename.Fit(b.Manifest.Name)+"-"+sum[:16]), nil
}

// Install unpacks the bundle into [Bundle.Folder]. If it fails, nothing is left there. A bundle
// that is there already stays.
func (b *Bundle) Install(ctx context.Context, root string) (folder string, err error) {
	folder, err = b.Folder(root)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(root, ".unpacking-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	for _, f := range b.zip.File {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if err := unpackFile(f, filepath.Join(temp, filepath.FromSlash(f.Name))); err != nil {
			return "", fmt.Errorf("the bundle's file %q cannot be unpacked: %w", f.Name, err)
		}
	}
	if program := b.Manifest.program(temp); program != "" {
		if err := os.Chmod(program, 0o700); err != nil {
			return "", fmt.Errorf("the bundle has no program %s: %w", filepath.Base(program), err)
		}
	}
	err = os.Rename(temp, folder)
	if _, missing := os.Stat(folder); err != nil && missing == nil {
		return folder, nil // another process was faster
	}
	return folder, err
}

// unpackFile writes one entry. Its size may not exceed the one in the directory of the ZIP file,
// which was checked.
func unpackFile(f *zip.File, path string) error {
	if f.FileInfo().IsDir() {
		return os.MkdirAll(path, 0o700)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	perm := fs.FileMode(0o600)
	if f.Mode()&0o111 != 0 {
		perm = 0o700
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, io.LimitReader(from, int64(f.UncompressedSize64)+1))
	if err == nil && uint64(n) > f.UncompressedSize64 {
		err = errors.New("it is larger than the bundle says")
	}
	return errors.Join(err, to.Close())
}

// Close closes the bundle's file.
func (b *Bundle) Close() error { return b.file.Close() }
