//go:build linux

package attack

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const nobodyID = 65534

func init() { roles["stranger"] = playStranger }

// playStranger is another user of the machine. It tries to open each path of its arguments, as a
// file, a folder and a socket, and prints each success.
func playStranger() {
	for _, path := range os.Args[1:] {
		if _, err := os.ReadFile(path); err == nil {
			fmt.Println("read", path)
		}
		if _, err := os.ReadDir(path); err == nil {
			fmt.Println("listed", path)
		}
		if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			f.Close()
			fmt.Println("opened for writing", path)
		}
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
			fmt.Println("connected to", path)
		}
	}
}

// Attacks 8, 9 and 54: another user of the machine calls tools over HTTP, and opens the socket, the
// state, the caches and the audit log. Expected: 401, and no path can be opened.
func TestAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	v := newVictim(t)
	// The folders above are open to all, so that only the modes of dowel's own files protect them.
	folder, err := os.MkdirTemp("", "dowel-attack-user-")
	if err == nil {
		err = os.Chmod(folder, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	t.Cleanup(v.stop)
	v.home = folder
	v.write(v.userFile(), fmt.Sprintf(`{"mcpServers": {"every": %s, "kv": %s, "shell": %s}, "gateway": {"audit": %q}}`,
		builtIn("everything"), builtIn("kv"), builtIn("shell"), filepath.Join(folder, "audit.jsonl")))
	v.start()
	v.succeed("", "call", "kv.set", "key=a", "value=b")
	v.succeed("", "servers", "disable", "shell")
	var paths []string
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if info, statErr := os.Lstat(path); err == nil && path != folder && statErr == nil {
			if info.Mode().Perm()&0o077 != 0 && info.Mode()&fs.ModeSymlink == 0 {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) < 6 {
		t.Fatalf("%v, %v", paths, err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(filepath.Dir(dowelPath), "stranger")
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	stranger := exec.Command(program, paths...)
	stranger.Env = []string{roleVariable + "=stranger"}
	stranger.Dir = "/"
	stranger.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID}}
	if output, err := stranger.CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("another user: %v\n%s", err, output)
	}
	for _, words := range [][]string{{"call", "every__echo", "message=xyzzy", "--url", v.url + "/mcp"}, {"status", "--token"}} {
		call := exec.Command(dowelPath, words...)
		call.Env = []string{"HOME=/nonexistent", "PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + folder}
		call.Dir = "/"
		call.SysProcAttr = stranger.SysProcAttr
		output, err := call.CombinedOutput()
		if strings.Contains(string(output), "xyzzy\n") || strings.Contains(string(output), v.token) || words[0] == "call" && err == nil {
			t.Errorf("dowel %v of another user: %v\n%s", words, err, output)
		}
	}
}

// Attack 55: a client's name has line breaks and JSON, to forge lines of the audit log. Expected:
// each line is one record, and none has a forged client.
func TestForgedAuditLines(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	audit := filepath.Join(v.home, "audit.jsonl")
	v.write(v.userFile(), fmt.Sprintf(`{"mcpServers": {"every": %s}, "gateway": {"audit": %q}}`, builtIn("everything"), audit))
	v.start()
	const forged = `x\"}\n{\"time\":\"2026-01-01T00:00:00Z\",\"client\":\"owner\",\"method\":\"tools/call\",\"outcome\":\"ok\"}\r\n\u2028`
	body := strings.Replace(echoBody, `"name":"attacker"`, `"name":"`+forged+`"`, 1)
	if code, text, _ := v.exchange("POST", "/mcp", body, v.echoFields()...); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	v.stop()
	text, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range lines {
		var record struct{ Client string }
		if json.Unmarshal([]byte(line), &record) != nil || record.Client == "owner" {
			t.Errorf("a line of the audit log: %q", line)
		}
	}
	if len(lines) != 1 {
		t.Errorf("%d lines for one call:\n%s", len(lines), text)
	}
}

// Attack 79: the folder for the socket belongs to another user, made before dowel ran, or all users
// can write it. Expected: dowel does not put its socket there, and does not talk to one there.
func TestSocketFolderOfAnotherUser(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string) error{
		"open to all":             func(path string) error { return os.Chmod(path, 0o777) },
		"a folder of another one": func(path string) error { return os.Chown(path, nobodyID, nobodyID) },
	} {
		if name != "open to all" && os.Getuid() != 0 {
			t.Log("only root can give a folder to another user")
			continue
		}
		v := newVictim(t)
		folder := filepath.Join(v.home, "runtime", "dowel")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := change(folder); err != nil {
			t.Fatal(err)
		}
		impostor, err := net.Listen("unix", filepath.Join(folder, "dowel.sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer impostor.Close()
		connected := make(chan struct{}, 10)
		go func() {
			for {
				conn, err := impostor.Accept()
				if err != nil {
					return
				}
				conn.Close()
				connected <- struct{}{}
			}
		}()
		for _, words := range [][]string{{"status"}, {"up", "--http", "0"}} {
			cmd := v.command(words...)
			for i, value := range cmd.Env {
				if strings.HasPrefix(value, "XDG_RUNTIME_DIR=") {
					cmd.Env[i] = "XDG_RUNTIME_DIR=" + filepath.Dir(folder)
				}
			}
			output, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(output), folder) || !strings.Contains(string(output), "other users") {
				t.Errorf("%s: dowel %v: %v, want an error that names %s and other users\n%s", name, words, err, folder, output)
			}
		}
		if len(connected) > 0 {
			t.Errorf("%s: dowel connects to the socket", name)
		}
	}
}
