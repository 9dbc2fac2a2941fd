package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"time"
)

// An archiveFile is one file of an archive. Its content is read from path.
type archiveFile struct {
	name, path string
	executable bool
}

func (f archiveFile) mode() int64 {
	if f.executable {
		return 0o755
	}
	return 0o644
}

// writeArchive writes a .zip or a .tar.gz, chosen by name, with all files below folder. Every entry
// has the same time and no owner, so that equal input makes an equal archive.
func writeArchive(name, folder string, files []archiveFile, modified time.Time) (err error) {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if strings.HasSuffix(name, ".zip") {
		return writeZip(out, folder, files, modified)
	}
	return writeTarGz(out, folder, files, modified)
}

func writeTarGz(w io.Writer, folder string, files []archiveFile, modified time.Time) error {
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	for _, file := range files {
		content, err := os.ReadFile(file.path)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: path.Join(folder, file.name), Size: int64(len(content)), Mode: file.mode(), ModTime: modified, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(content); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

func writeZip(w io.Writer, folder string, files []archiveFile, modified time.Time) error {
	archive := zip.NewWriter(w)
	for _, file := range files {
		content, err := os.ReadFile(file.path)
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: path.Join(folder, file.name), Method: zip.Deflate, Modified: modified}
		header.SetMode(os.FileMode(file.mode()))
		entry, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(content); err != nil {
			return err
		}
	}
	return archive.Close()
}
