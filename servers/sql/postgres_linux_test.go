package sql

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// startPostgres starts a PostgreSQL with an empty database, on a socket in a folder of its own, and
// returns its URL. PostgreSQL refuses to run as root: then it runs as the user nobody.
func startPostgres(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "dowel-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	var attributes *syscall.SysProcAttr
	if os.Getuid() == 0 {
		attributes = &syscall.SysProcAttr{Credential: unprivileged(t)}
		if err := os.Chown(folder, int(attributes.Credential.Uid), int(attributes.Credential.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(folder, "data")
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(findProgram(t, name), args...)
		cmd.Dir, cmd.SysProcAttr = folder, attributes
		cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
		return cmd
	}
	if out, err := command("initdb", "-D", data, "-U", "owner", "-A", "trust", "-E", "UTF8", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	// pg_ctl returns when the database accepts connections.
	start := command("pg_ctl", "-D", data, "-w", "-t", "120", "-l", filepath.Join(folder, "log"), "-o", "-c listen_addresses= -c fsync=off -k "+folder, "start")
	if err := start.Run(); err != nil {
		log, _ := os.ReadFile(filepath.Join(folder, "log"))
		t.Fatalf("pg_ctl start: %v\n%s", err, log)
	}
	t.Cleanup(func() {
		if out, err := command("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop").CombinedOutput(); err != nil {
			t.Errorf("pg_ctl stop: %v\n%s", err, out)
		}
	})
	return fmt.Sprintf("postgres:///postgres?host=%s&user=owner", url.QueryEscape(folder))
}

func unprivileged(t *testing.T) *syscall.Credential {
	t.Helper()
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(nobody.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// findProgram finds a program of PostgreSQL, which Debian does not have in PATH.
func findProgram(t *testing.T, name string) string {
	t.Helper()
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(found) > 0 {
		return found[len(found)-1]
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: install PostgreSQL, as make postgres does", err)
	}
	return path
}

// execute runs statements as the owner of the database.
func execute(t *testing.T, database, statements string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if _, err := c.PgConn().Exec(t.Context(), statements).ReadAll(); err != nil {
		t.Fatal(err)
	}
}
