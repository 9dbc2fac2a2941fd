package data

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// databases numbers the file systems of SQLite, which are registered by name.
var databases atomic.Int64

// openDatabase opens an empty database that can open no file, and writes temporary files to temp
// only. It is interrupted when ctx ends.
func openDatabase(ctx context.Context, temp *tempFiles) (db *sqlite3.Conn, closeDB func(), err error) {
	name := "temp" + strconv.FormatInt(databases.Add(1), 10)
	vfs.Register(name, temp)
	closeDB = func() {
		if db != nil {
			db.Close()
		}
		vfs.Unregister(name)
	}
	db, err = sqlite3.OpenContext(sqlite3.WithMaxMemory(ctx, queryMemory), "file:?vfs="+name)
	if err == nil {
		db.Limit(sqlite3.LIMIT_LENGTH, maxLength)
		db.Limit(sqlite3.LIMIT_ATTACHED, 0)
		err = db.Exec("PRAGMA temp_store = FILE; PRAGMA cache_size = -8192; PRAGMA trusted_schema = OFF")
	}
	if err != nil {
		closeDB()
		return nil, nil, err
	}
	db.SetInterrupt(ctx)
	return db, closeDB, nil
}

// tempFiles is a [vfs.VFS] with files that have no name and disappear when they are closed.
type tempFiles struct {
	left int64 // bytes that all files may still grow
}

// Open implements [vfs.VFS].
func (t *tempFiles) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if name != "" {
		return nil, flags, sqlite3.CANTOPEN
	}
	f, err := os.CreateTemp("", "dowel-data-*")
	if err != nil {
		return nil, flags, err
	}
	return &tempFile{File: f, all: t}, flags, nil
}

// Delete implements [vfs.VFS].
func (t *tempFiles) Delete(string, bool) error { return sqlite3.IOERR_DELETE }

// Access implements [vfs.VFS].
func (t *tempFiles) Access(string, vfs.AccessFlag) (bool, error) { return false, nil }

// FullPathname implements [vfs.VFS].
func (t *tempFiles) FullPathname(name string) (string, error) { return name, nil }

type tempFile struct {
	*os.File
	all  *tempFiles
	size int64
}

// WriteAt implements [vfs.File].
func (f *tempFile) WriteAt(p []byte, offset int64) (int, error) {
	if grown := offset + int64(len(p)) - f.size; grown > 0 {
		if grown > f.all.left {
			return 0, sqlite3.FULL
		}
		f.all.left -= grown
		f.size += grown
	}
	return f.File.WriteAt(p, offset)
}

// Close implements [vfs.File].
func (f *tempFile) Close() error {
	f.all.left += f.size
	defer os.Remove(f.Name())
	return f.File.Close()
}

// Size implements [vfs.File].
func (f *tempFile) Size() (int64, error) { return f.size, nil }

// Truncate implements [vfs.File].
func (f *tempFile) Truncate(size int64) error {
	if size < f.size {
		f.all.left += f.size - size
		f.size = size
	}
	return f.File.Truncate(size)
}

// The other methods of [vfs.File] do nothing: one connection uses a file, and it need not survive.

func (f *tempFile) Sync(vfs.SyncFlag) error                         { return nil }
func (f *tempFile) Lock(vfs.LockLevel) error                        { return nil }
func (f *tempFile) Unlock(vfs.LockLevel) error                      { return nil }
func (f *tempFile) CheckReservedLock() (bool, error)                { return false, nil }
func (f *tempFile) SectorSize() int                                 { return 0 }
func (f *tempFile) DeviceCharacteristics() vfs.DeviceCharacteristic { return 0 }
