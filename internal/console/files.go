package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
)

//go:embed web
var web embed.FS

// fileSet has the files of the page.
type fileSet struct {
	fs     fs.FS
	hash   string // of all files; "" while they are developed
	packed map[string][]byte
}

// loadFiles returns the built-in files, or those in a folder.
func loadFiles(folder string) *fileSet {
	if folder != "" {
		return &fileSet{fs: os.DirFS(folder)}
	}
	files, err := fs.Sub(web, "web")
	if err != nil {
		panic(err) // the name is valid
	}
	s := &fileSet{fs: files, packed: map[string][]byte{}}
	sum := sha256.New()
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // fails for a wrong level only
		_, _ = z.Write(text)                                       // to memory
		_ = z.Close()
		s.packed[name] = packed.Bytes()
		return nil
	})
	if err != nil {
		panic(err) // they are part of the program
	}
	s.hash = hex.EncodeToString(sum.Sum(nil))[:12]
	return s
}

// contentTypes are the types of the files by the end of their names.
var contentTypes = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

// shellName is the page. It is served for every path of the console that names no file.
const shellName = "index.html"

// serveFile answers with the file of a path /~HASH/NAME, which never changes, or with the page.
func (s *fileSet) serveFile(w http.ResponseWriter, r *http.Request, o Options, at string) {
	folder := "/~" + s.hash + "/"
	name, isFile := strings.CutPrefix(at, folder)
	if !isFile {
		if strings.HasPrefix(at, "/~") {
			refuse(w, http.StatusNotFound, "dowel has another version of this file: load the page again")
			return
		}
		s.serveShell(w, o, folder)
		return
	}
	kind := contentTypes[path.Ext(name)]
	text, err := fs.ReadFile(s.fs, name)
	if err != nil || kind == "" {
		refuse(w, http.StatusNotFound, "the console has no such file")
		return
	}
	header := w.Header()
	header.Set("Content-Type", kind)
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	if s.hash == "" {
		header.Set("Cache-Control", "no-store")
	}
	header.Set("Vary", "Accept-Encoding")
	if packed := s.packed[name]; packed != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		text = packed
	}
	_, _ = w.Write(text) // a browser that is gone needs no file
}

// serveShell answers with the page, in which words in braces are places.
func (s *fileSet) serveShell(w http.ResponseWriter, o Options, folder string) {
	text, err := fs.ReadFile(s.fs, shellName)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "the console has no page: "+err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	login, program := "ticket", "dowel"
	if o.Authorize != nil {
		login = "own"
	}
	if o.IsEmbedded {
		program = "other"
	}
	page := strings.NewReplacer("{prefix}", o.Prefix, "{files}", o.Prefix+strings.TrimSuffix(folder, "/"), "{hidden}", strings.Join(o.Hidden, " "),
		"{login}", login, "{program}", program, "{reads}", strconv.FormatBool(o.ReadOnly)).Replace(string(text))
	_, _ = w.Write([]byte(page)) // a browser that is gone needs no page
}
