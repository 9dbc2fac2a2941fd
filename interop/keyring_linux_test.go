package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcptest/authtest"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// desktopSession is a user with a session bus, gnome-keyring (the Secret Service of Debian) and
// without a screen.
type desktopSession struct {
	t       *testing.T
	home    string
	mark    string
	bus     string // address
	keyring *exec.Cmd
}

func startDesktopSession(t *testing.T) *desktopSession {
	t.Helper()
	s := &desktopSession{t: t, mark: newMark(t)}
	var err error
	if s.home, err = os.MkdirTemp("", "kr"); err != nil { // short enough for the names of sockets
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(s.home) })
	bus := s.newCommand("dbus-daemon", "--config-file="+s.writeBusConfig(), "--nofork", "--nopidfile", "--print-address=1")
	out, err := bus.StdoutPipe()
	if err == nil {
		err = bus.Start()
	}
	if err != nil {
		t.Fatalf("the session bus: %v; make keyring installs it", err)
	}
	t.Cleanup(func() {
		_ = bus.Process.Kill()
		_ = bus.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the address of the session bus: %v", err)
	}
	s.bus = strings.TrimSpace(line)
	t.Cleanup(s.stopKeyring)
	return s
}

// writeBusConfig writes the configuration of the session bus. The bus starts the program that asks
// the user for a password, and no keyring.
func (s *desktopSession) writeBusConfig() (path string) {
	s.t.Helper()
	const prompter = "org.gnome.keyring.SystemPrompter.service"
	services := filepath.Join(s.home, "services")
	text, err := os.ReadFile(filepath.Join("/usr/share/dbus-1/services", prompter))
	if err == nil {
		err = os.Mkdir(services, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(services, prompter), text, 0o600)
	}
	path = filepath.Join(s.home, "bus.conf")
	if err == nil {
		err = os.WriteFile(path, []byte(`<busconfig><type>session</type><listen>unix:dir=`+s.home+`</listen><servicedir>`+services+`</servicedir>
			<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>`), 0o600)
	}
	if err != nil {
		s.t.Fatalf("%v; make keyring installs gnome-keyring", err)
	}
	return path
}

// newCommand returns a command of the session's user.
func (s *desktopSession) newCommand(words ...string) *exec.Cmd {
	words = withMark(s.mark, words...)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = s.home
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "DBUS_") && !strings.HasPrefix(name, "DOWEL_") && !strings.HasPrefix(name, "XDG_") && name != "DISPLAY" && name != "WAYLAND_DISPLAY" {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "DBUS_SESSION_BUS_ADDRESS="+s.bus, "NO_AT_BRIDGE=1")
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"} {
		cmd.Env = append(cmd.Env, name+"="+s.home)
	}
	return cmd
}

// startKeyring starts gnome-keyring. Its collection is made or unlocked with a password, or stays
// locked.
func (s *desktopSession) startKeyring(unlocked bool) {
	s.t.Helper()
	words := []string{"gnome-keyring-daemon", "--components=secrets", "--foreground"}
	if unlocked {
		words = append(words, "--unlock")
	}
	s.keyring = s.newCommand(words...)
	s.keyring.Stdin = strings.NewReader("password")
	var said bytes.Buffer
	s.keyring.Stdout, s.keyring.Stderr = &said, &said
	if err := s.keyring.Start(); err != nil {
		s.t.Fatalf("gnome-keyring: %v; make keyring installs it", err)
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if text, err := s.callBus("/org/freedesktop/secrets/collection/login", "org.freedesktop.DBus.Properties.Get", "string:org.freedesktop.Secret.Collection", "string:Locked"); err == nil {
			if isLocked := strings.Contains(text, "boolean true"); isLocked == unlocked {
				s.t.Fatalf("the collection is locked: %v", isLocked)
			}
			return
		}
	}
	s.stopKeyring()
	s.t.Fatalf("gnome-keyring does not answer: %s", said.String())
}

func (s *desktopSession) callBus(object, method string, arguments ...string) (string, error) {
	words := append([]string{"dbus-send", "--bus=" + s.bus, "--print-reply", "--dest=org.freedesktop.secrets", object, method}, arguments...)
	text, err := s.newCommand(words...).CombinedOutput()
	return string(text), err
}

func (s *desktopSession) stopKeyring() {
	if s.keyring == nil {
		return
	}
	_ = s.keyring.Process.Kill()
	_ = s.keyring.Wait()
	s.keyring = nil
}

// dowel runs the program and returns its output.
func (s *desktopSession) dowel(words ...string) (string, error) {
	cmd := s.newCommand(append([]string{binaryPath(s.t, "dowel")}, words...)...)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// expect runs dowel, which must succeed or fail, and whose output must have each of the texts.
func (s *desktopSession) expect(succeeds bool, line string, texts ...string) {
	s.t.Helper()
	begin := time.Now()
	out, err := s.dowel(strings.Fields(line)...)
	if (err == nil) != succeeds {
		s.t.Errorf("dowel %s after %v: %v\n%s", line, time.Since(begin), err, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			s.t.Errorf("dowel %s: %s\nwant %q", line, out, text)
		}
	}
}

// logIn logs in at a server, as a user with a browser.
func (s *desktopSession) logIn(as *authtest.Server, server string) {
	s.t.Helper()
	cmd := s.newCommand(binaryPath(s.t, "dowel"), "login", "--url", server, "--no-browser", "--json")
	errors, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	for lines := bufio.NewScanner(errors); lines.Scan(); {
		var line struct{ Login struct{ URL string } }
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.Login.URL == "" {
			s.t.Log(lines.Text())
			continue
		}
		if to, err := as.Approve(s.t.Context(), line.Login.URL); err != nil {
			s.t.Error(err)
		} else if resp, err := http.Get(to.String()); err != nil {
			s.t.Error(err)
		} else {
			resp.Body.Close()
		}
	}
	if err := cmd.Wait(); err != nil {
		s.t.Fatal(err)
	}
}

// The key of the logins is kept in the real Secret Service. While its collection is locked and
// there is no screen to unlock it, commands fail soon and name the way out, the logins stay, and a
// user without logins gets a key file.
func TestSecretService(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	notes := server.New("notes", "1", nil)
	server.Tool(notes, "read", "Reads.", func(context.Context, struct{}) (string, error) { return "ok", nil })
	handler := streamable.Handler(notes, nil)
	url := as.Protect(t, handler, "use").URL
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = handler.Shutdown(ended) // the test has ended
	})
	s := startDesktopSession(t)
	s.startKeyring(true)
	s.logIn(as, url)
	keyFile := filepath.Join(s.home, "dowel", "auth", "key")
	if _, err := os.Stat(keyFile); err == nil {
		t.Errorf("the key is in %s, want it in the keyring", keyFile)
	}
	entry := `{"mcpServers": {"notes": {"url": "` + url + `"}}}`
	if err := os.WriteFile(filepath.Join(s.home, "dowel", "dowel.json"), []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	s.expect(true, "auth status", "in the keyring", "logged in at "+as.Issuer)
	s.expect(true, "doctor notes", "you are logged in", "in the keyring")
	s.expect(true, "tools --url "+url, "read")

	s.stopKeyring()
	s.startKeyring(false)
	s.expect(false, "tools --url "+url, "keyring", "dowel auth key --move file")
	s.expect(false, "doctor notes", "keyring", "dowel auth key --move file")
	s.expect(false, "auth status", "keyring", "dowel auth key --move file")
	s.expect(false, "auth key --move file", "keyring", "failed to unlock")
	other := *s
	if other.home = filepath.Join(s.home, "other"); os.Mkdir(other.home, 0o700) != nil {
		t.Fatal("no folder for another user")
	}
	other.logIn(as, url)
	other.expect(true, "auth status", "in a file", "logged in at "+as.Issuer)

	s.stopKeyring()
	s.startKeyring(true)
	s.expect(true, "tools --url "+url, "read")
	s.expect(true, "auth key --move file", "in a file")
	s.stopKeyring()
	s.expect(true, "tools --url "+url, "read")
	s.expect(true, "auth status", "in a file", "logged in at "+as.Issuer)
	if n := as.Count("authorize"); n != 2 {
		t.Errorf("%d logins, want 2", n)
	}
}
