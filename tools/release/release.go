package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A release describes one run. Its methods write only below out and in temporary folders.
type release struct {
	root    string // folder of the main module
	version string
	servers []string // platforms, as GOOS/GOARCH, for which the servers are built too
	out     string   // folder of the results; build deletes it first
	log     io.Writer

	time time.Time // of the commit; the modification time of every archived file
}

// A target is one platform and its binary.
type target struct {
	goos, goarch string
	binary       string        // path of the stripped binary
	servers      []archiveFile // the programs of the module servers, if they are built
}

func (t target) String() string { return t.goos + "/" + t.goarch }

// fileName returns the name of a program's file, as users see it.
func (t target) fileName(program string) string {
	if t.goos == "windows" {
		return program + ".exe"
	}
	return program
}

func (r *release) build(ctx context.Context, platforms []string) error {
	targets, err := parsePlatforms(platforms)
	if err != nil {
		return err
	}
	if r.time, err = r.commitTime(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "dowel-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	extras, err := r.collectExtras(ctx, filepath.Join(scratch, "extras"))
	if err != nil {
		return err
	}
	for i := range targets {
		t := &targets[i]
		t.binary = filepath.Join(scratch, t.goos+"-"+t.goarch, t.fileName("dowel"))
		if err := r.buildTarget(ctx, t, extras); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	if err := r.checkEngine(ctx, targets[0], scratch); err != nil {
		return err
	}
	if err := r.writeNPM(ctx, targets, filepath.Join(scratch, "npm")); err != nil {
		return fmt.Errorf("npm packages: %w", err)
	}
	return r.writeChecksums()
}

// parsePlatforms parses values such as linux/amd64. It rejects a platform without an npm name.
func parsePlatforms(platforms []string) ([]target, error) {
	var targets []target
	for _, platform := range platforms {
		goos, goarch, _ := strings.Cut(platform, "/")
		t := target{goos: goos, goarch: goarch}
		if npmOS[goos] == "" || npmCPU[goarch] == "" {
			return nil, fmt.Errorf("platform %q: want GOOS/GOARCH with linux, darwin or windows, and amd64 or arm64", platform)
		}
		targets = append(targets, t)
	}
	if len(targets) == 0 {
		return nil, errors.New("want at least one platform")
	}
	return targets, nil
}

// commitTime returns the time of the checked-out commit, or of SOURCE_DATE_EPOCH if that is set.
func (r *release) commitTime(ctx context.Context) (time.Time, error) {
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		out, err := r.output(ctx, nil, "git", "log", "-1", "--format=%ct")
		if err != nil {
			return time.Time{}, err
		}
		epoch = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("the commit's time %q is not a number of seconds", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// buildTarget compiles one binary and writes its archive and its bill of materials.
func (r *release) buildTarget(ctx context.Context, t *target, extras []archiveFile) error {
	start := time.Now()
	if err := r.compile(ctx, *t); err != nil {
		return err
	}
	var err error
	if t.servers, err = r.compileServers(ctx, *t, filepath.Join(filepath.Dir(t.binary), "servers")); err != nil {
		return err
	}
	info, err := os.Stat(t.binary)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("dowel_%s_%s_%s", r.version, t.goos, t.goarch)
	files := append([]archiveFile{{name: t.fileName("dowel"), path: t.binary, executable: true}}, t.servers...)
	files = append(files, extras...)
	archive := filepath.Join(r.out, name+".tar.gz")
	if t.goos == "windows" {
		archive = filepath.Join(r.out, name+".zip")
	}
	if err := writeArchive(archive, name, files, r.time); err != nil {
		return err
	}
	if err := r.writeSBOM("dowel", t.binary, filepath.Join(r.out, name+".cdx.json")); err != nil {
		return err
	}
	if err := r.writeServerSBOMs(*t, t.servers); err != nil {
		return err
	}
	if info.Size() > maxBinary {
		return fmt.Errorf("the stripped binary for %s has %.1f MB, at most %.1f are allowed: see which dependency grew, or what makes the linker keep all methods (text/template, reflect.Value.MethodByName)", t, megabytes(info), maxBinary/1e6)
	}
	packed, err := os.Stat(archive)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.log, "%-14s binary %5.1f MB, archive %5.1f MB, %s\n", t, megabytes(info), megabytes(packed), time.Since(start).Round(time.Second))
	return nil
}

// maxBinary is the size in bytes that the stripped binary may have on each platform.
const maxBinary = 46_000_000

func megabytes(info os.FileInfo) float64 { return float64(info.Size()) / 1e6 }

// compile builds the stripped binary of a platform. flags are more flags of go build.
func (r *release) compile(ctx context.Context, t target, flags ...string) error {
	binary, err := filepath.Abs(t.binary)
	if err != nil {
		return err
	}
	env := []string{"GOOS=" + t.goos, "GOARCH=" + t.goarch, "CGO_ENABLED=0"}
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w -X github.com/dowel-mcp/dowel/internal/version.release=" + r.version, "-o", binary}, flags...)
	_, err = r.output(ctx, env, "go", append(args, "./cmd/dowel")...)
	return err
}

// collectExtras returns the files that every archive contains besides the binary. It writes
// completions and man pages to folder.
func (r *release) collectExtras(ctx context.Context, folder string) ([]archiveFile, error) {
	var files []archiveFile
	for _, name := range []string{"README.md", "LICENSE", "CHANGELOG.md"} {
		files = append(files, archiveFile{name: name, path: filepath.Join(r.root, name)})
	}
	for _, write := range []func(string) error{
		func(folder string) error { return r.writeCompletions(ctx, folder) },
		r.writeManPages,
	} {
		if err := write(folder); err != nil {
			return nil, err
		}
	}
	for _, kind := range []string{"completions", "man"} {
		entries, err := os.ReadDir(filepath.Join(folder, kind))
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			files = append(files, archiveFile{name: kind + "/" + entry.Name(), path: filepath.Join(folder, kind, entry.Name())})
		}
	}
	return files, nil
}

// writeCompletions asks a binary for this machine for the completion script of each shell.
func (r *release) writeCompletions(ctx context.Context, folder string) error {
	host := target{goos: runtime.GOOS, goarch: runtime.GOARCH}
	host.binary = filepath.Join(folder, "host", host.fileName("dowel"))
	if err := r.compile(ctx, host); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(folder, "completions"), 0o755); err != nil {
		return err
	}
	for shell, name := range map[string]string{"bash": "dowel.bash", "zsh": "_dowel", "fish": "dowel.fish", "powershell": "dowel.ps1"} {
		script, err := exec.CommandContext(ctx, host.binary, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("completion for %s: %w", shell, err)
		}
		if err := os.WriteFile(filepath.Join(folder, "completions", name), script, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeChecksums lists the SHA-256 of each file of the release, in the form that sha256sum -c
// reads.
func (r *release) writeChecksums() error {
	var lines []string
	err := filepath.WalkDir(r.out, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		sum, err := hashFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.out, path)
		lines = append(lines, sum+"  "+filepath.ToSlash(name)+"\n")
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	return os.WriteFile(filepath.Join(r.out, "checksums.txt"), []byte(strings.Join(lines, "")), 0o644)
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// output runs a command in the main module's folder. Its error includes what the command printed.
func (r *release) output(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), env...)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	return out, err
}
