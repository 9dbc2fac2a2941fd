package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/mcp"
)

// Bounds of what a task takes along: a model reads a quarter of a million tokens in a text of that size, and no provider takes
// larger images or sounds.
const (
	maxTaskText  = 1 << 20
	maxTaskMedia = 5 << 20
)

// input is what the model is told: the task, what is piped in, and the files.
func (a *app) input(ctx context.Context, f *runFlags, words []string) (content []mcp.Content, err error) {
	task := strings.Join(words, " ")
	whole := task == "-"
	if whole {
		task = ""
	}
	if whole || a.isPiped() {
		piped, err := a.readPiped(ctx, whole)
		if err != nil {
			return nil, err
		}
		task = strings.TrimSpace(task + "\n\n" + strings.TrimSpace(piped))
	}
	for _, path := range f.files {
		blocks, err := attached(path)
		if err != nil {
			return nil, usagef("-f %s: %w", path, err)
		}
		content = append(content, blocks...)
	}
	switch {
	case strings.TrimSpace(task) != "":
		return append(content, mcp.Text(task)), nil
	case whole:
		return nil, usagef("standard input is empty: pipe the task into it")
	}
	return nil, usagef(`there is no task: dowel run "What is to be done"`)
}

// isPiped reports whether something is piped into standard input, or it is a file.
func (a *app) isPiped() bool {
	file, ok := a.stdin.(*os.File)
	if !ok {
		return a.stdin != nil
	}
	info, err := file.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0) // Node makes its pipes of sockets
}

// readPiped reads standard input to its end.
func (a *app) readPiped(ctx context.Context, whole bool) (string, error) {
	if whole && terminal(a.stdin) != nil {
		a.notice("Write the task, and end it with Ctrl-D.")
	}
	type read struct {
		text []byte
		err  error
	}
	got := make(chan read, 1)
	go func() { // which ends with the process at last, where the context ends before
		text, err := io.ReadAll(io.LimitReader(a.stdin, maxTaskText+1))
		got <- read{text, err}
	}()
	patient := time.NewTimer(patienceWithPipe)
	defer patient.Stop()
	for {
		select {
		case r := <-got:
			return textOf("standard input", r.text, r.err)
		case <-patient.C:
			if terminal(a.stdin) == nil {
				a.warn("standard input is still open, and what comes there belongs to the task: close it, or keep it out with < /dev/null")
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// patienceWithPipe is after what time it is told that standard input is waited for.
const patienceWithPipe = 3 * time.Second

func textOf(what string, text []byte, err error) (string, error) {
	switch {
	case err != nil:
		return "", fmt.Errorf("%s cannot be read: %w", what, err)
	case len(text) > maxTaskText:
		return "", usagef("%s holds more than %s, which is more than a model reads: give it a file's name and a server that reads it (--server files)", what, size(maxTaskText))
	case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
		return "", usagef("%s is no text in UTF-8: give files with -f", what)
	}
	return string(text), nil
}

// attached is a file as content, with its name.
func attached(path string) ([]mcp.Content, error) {
	info, err := os.Stat(path)
	var failed *os.PathError
	switch {
	case errors.As(err, &failed):
		return nil, failed.Err
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a folder: have the model look into it with --server files")
	case info.Size() > maxTaskMedia:
		return nil, fmt.Errorf("it holds %s, and %s is the most: have the model read it with --server files", size(int(info.Size())), size(maxTaskMedia))
	}
	data, err := readBounded(path, maxTaskMedia)
	if err != nil {
		return nil, err
	}
	name := mcp.Text(fmt.Sprintf("The file %s:", path))
	switch kind := kindOf(path, data); {
	case strings.HasPrefix(kind, "image/"):
		return []mcp.Content{name, mcp.Image(data, kind)}, nil
	case strings.HasPrefix(kind, "audio/"):
		return []mcp.Content{name, mcp.Audio(data, kind)}, nil
	case kind == "":
		return nil, errors.New("it is neither a text in UTF-8 nor an image (PNG, JPEG, GIF, WebP) nor a sound (WAV, MP3)")
	case len(data) > maxTaskText:
		return nil, fmt.Errorf("it is a text of %s, and %s is the most: have the model read it with --server files", size(len(data)), size(maxTaskText))
	default:
		return []mcp.Content{mcp.Embed(mcp.ResourceContents{URI: fileURI(path), MIMEType: kind, Text: string(data)})}, nil
	}
}

// readBounded reads a file that may grow meanwhile, or be none of the usual ones.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it holds more than %s", size(int(limit)))
	}
	return data, err
}

// kindOf is the MIME type of what models take; empty for everything else.
func kindOf(path string, data []byte) string {
	kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "audio/mpeg":
		return kind
	case "audio/wave":
		return "audio/wav"
	}
	extension := strings.ToLower(filepath.Ext(path))
	if extension == ".mp3" && len(data) > 1 && data[0] == 0xff { // one without a tag before its first frame
		return "audio/mpeg"
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return ""
	}
	if known, _, _ := strings.Cut(mime.TypeByExtension(extension), ";"); strings.HasPrefix(known, "text/") || known == "application/json" {
		return known
	}
	return "text/plain"
}

// fileURI is the URI of a file.
func fileURI(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // C:/…
	}
	return (&url.URL{Scheme: "file", Path: slashed}).String()
}
