//go:build unix

package shell

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
)

func TestMissingBash(t *testing.T) {
	dir := t.TempDir()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sh, filepath.Join(dir, "sh")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	for _, c := range []struct {
		name       string
		candidates []string
		want       string // the path, or a part of the error
	}{
		{"", []string{"bash", "sh"}, filepath.Join(dir, "sh")},
		{"", []string{"bash", dir + "/bash", dir + "/sh"}, filepath.Join(dir, "sh")},
		{"", []string{"bash"}, "error: neither bash nor sh"},
		{"sh", nil, filepath.Join(dir, "sh")},
		{"nosuchshell", []string{"sh"}, "error: the option shell"},
	} {
		got, err := findShell(c.name, c.candidates...)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != c.want && !(strings.HasPrefix(c.want, "error: ") && strings.HasPrefix(got, c.want)) {
			t.Errorf("%q %q: got %q, want %q", c.name, c.candidates, got, c.want)
		}
	}
	o := Options{Shell: "sh"}
	p, err := o.resolveProgram()
	if err != nil || p.bash || !strings.Contains(p.note, "use only POSIX sh syntax") {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestBadOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Dir: file + "/none"}, "the folder of the shells"},
		{Options{Dir: file}, "is not a folder"},
		{Options{Shell: "nosuchshell"}, "the option shell"},
		{Options{Timeout: -1}, "must not be negative"},
		{Options{Timeout: 2 * MaxTimeout}, "at most 1h"},
		{Options{MaxShells: -1}, "must not be negative"},
	} {
		if _, err := New(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got the error %v, want one with %q", c.o, err, c.want)
		}
	}
	w := open(t, Options{Shell: "false"})
	w.fail(args{"command": "echo"}, "could not open a shell: the shell ended while it started")
}

func TestEnvironment(t *testing.T) {
	t.Setenv("A_SECRET", "known")
	open(t, Options{}).session().wants("echo $A_SECRET $TERM", 0, "known dumb\n")
	open(t, Options{CleanEnv: true, Env: map[string]string{"TERM": "other"}}).session().wants("echo $A_SECRET $TERM", 0, "other\n")
}

// Shells do not get the keys of models, unless the options name them.
func TestModelKeys(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "one")
	t.Setenv("ANTHROPIC_API_KEY", "two")
	t.Setenv("A_SECRET", "known=yes")
	t.Setenv("PWD", "/nowhere")
	dir := t.TempDir()
	const show = `echo "$A_SECRET $TERM ${OPENAI_API_KEY-none} ${ANTHROPIC_API_KEY-none} $(pwd)"`
	open(t, Options{Dir: dir}).session().wants(show, 0, "known=yes dumb none none "+dir+"\n")
	open(t, Options{Dir: dir, Keys: []string{"OPENAI_API_KEY"}}).session().wants(show, 0, "known=yes dumb one none "+dir+"\n")
	open(t, Options{Dir: dir, Keys: ModelKeys}).session().wants(show, 0, "known=yes dumb one two "+dir+"\n")
	open(t, Options{Dir: dir, Env: map[string]string{"ANTHROPIC_API_KEY": "three"}}).session().wants(show, 0, "known=yes dumb none three "+dir+"\n")
	if _, err := New(Options{Keys: []string{"A_SECRET"}}); err == nil || !strings.Contains(err.Error(), "want OPENAI_API_KEY or ANTHROPIC_API_KEY") {
		t.Errorf("got the error %v", err)
	}
}

func TestSandboxNeedsBwrap(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := New(Options{Shell: bash, Sandbox: true}); !errors.Is(err, ErrSandbox) || !strings.Contains(err.Error(), "install the package bubblewrap") {
		t.Errorf("got the error %v", err)
	}
}

func TestSandboxOptions(t *testing.T) {
	for _, c := range []struct {
		dir, homes string // the home folders, separated by colons
		network    bool
		want       string // the options after the fixed ones
	}{
		{"/work", "/home/u", false, "--tmpfs /home/u --bind /work /work --chdir /work"},
		{"/home/u/w", "/home/u", false, "--tmpfs /home/u --bind /home/u/w /home/u/w --chdir /home/u/w"},
		{"/home/u", "/home/u", false, "--bind /home/u /home/u --chdir /home/u"},
		{"/home", "/home/u", false, "--bind /home /home --chdir /home"},
		{"/home/user", "/home/u", false, "--tmpfs /home/u --bind /home/user /home/user --chdir /home/user"},
		{"/work", "", false, "--bind /work /work --chdir /work"},
		{"/work", "/", false, "--bind /work /work --chdir /work"},
		{"/work", "/home/u:/root", false, "--tmpfs /home/u --tmpfs /root --bind /work /work --chdir /work"},
		{"/", "/home/u", false, "--chdir /"},
		{"/work", "", true, "--share-net --ro-bind-try /run/systemd/resolve /run/systemd/resolve --bind /work /work --chdir /work"},
	} {
		always := "--die-with-parent --new-session --unshare-all --cap-drop ALL --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --tmpfs /run "
		if got := strings.Join(sandboxOptions(c.dir, filepath.SplitList(c.homes), c.network), " "); got != always+c.want {
			t.Errorf("%+v: got %s", c, got)
		}
	}
}

// If HOME names another folder, the account's home folder is hidden too.
func TestHomes(t *testing.T) {
	account, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	t.Setenv("HOME", elsewhere)
	if got := homeFolders(); len(got) != 2 || filepath.Base(got[0]) != filepath.Base(elsewhere) || filepath.Base(got[1]) != filepath.Base(account.HomeDir) {
		t.Errorf("hidden are %q, not %s and %s", got, elsewhere, account.HomeDir)
	}
}

// bwrapEnv names the bubblewrap that the tests must use. Without it they look for one, and are
// skipped if there is none.
const bwrapEnv = "DOWEL_TEST_BWRAP"

// sandboxed opens a shell in a real sandbox. If bubblewrap cannot make one, the test checks the
// error and is skipped.
func sandboxed(t *testing.T, o Options) session {
	t.Helper()
	bwrap := os.Getenv(bwrapEnv)
	if bwrap == "" {
		var err error
		if bwrap, err = exec.LookPath("bwrap"); err != nil {
			t.Skipf("NO SANDBOX IS TESTED: bubblewrap is not installed, and %s does not say where it is; make test installs it", bwrapEnv)
		}
	}
	t.Setenv("PATH", filepath.Dir(bwrap)+":"+os.Getenv("PATH"))
	o.Sandbox = true
	if out, err := exec.Command(bwrap, "--unshare-all", "--ro-bind", "/", "/", "true").CombinedOutput(); err != nil {
		if _, err := exec.LookPath(bwrap); err != nil {
			t.Fatalf("%s: %v", bwrapEnv, err)
		}
		_, err := New(o)
		if !errors.Is(err, ErrSandbox) || !strings.Contains(err.Error(), strings.TrimSpace(string(out))) {
			t.Errorf("the sandbox fails: got the error %v, want the output of bubblewrap: %s", err, out)
		}
		t.Skipf("ONLY THE ERROR FOR A SANDBOX IS TESTED: bubblewrap is installed but lacks permissions on this machine: %s", out)
	}
	return open(t, o).session()
}

// If bubblewrap lacks permissions, New reports that with bubblewrap's own message.
func TestSandboxWithoutPermission(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := "#!" + bash + "\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	_, err = New(Options{Shell: bash, Sandbox: true})
	if !errors.Is(err, ErrSandbox) || !strings.Contains(err.Error(), "user namespaces") || !strings.HasSuffix(err.Error(), ": bwrap: No permissions to create new namespace") {
		t.Errorf("got the error %v", err)
	}
}

func TestSandbox(t *testing.T) {
	t.Setenv("A_SECRET", "known")
	t.Setenv("HOME", t.TempDir())
	os.WriteFile(filepath.Join(os.Getenv("HOME"), "key"), nil, 0o644)
	s := sandboxed(t, Options{})
	outside := filepath.Join(t.TempDir(), "outside")
	s.wants("echo x >inside && cat inside; echo y >/tmp/own && cat /tmp/own", 0, "x\ny\n")
	s.wants("{ echo x >"+outside+"; } 2>/dev/null", 1, "")
	s.wants("{ echo x >/etc/outside; } 2>/dev/null", 1, "")
	s.wants("ls -A ~ /run; echo $A_SECRET; tail -n +3 /proc/net/dev | grep -vc lo:", 1, func() string {
		r := s.do("ls -A ~ /run; echo $A_SECRET; tail -n +3 /proc/net/dev | grep -vc lo:")
		if !strings.HasSuffix(r.Output, "\n\n0\n") || strings.Contains(r.Output, "key") {
			t.Errorf("got %s", show(r))
		}
		return r.Output
	}())
	if _, err := os.Stat(filepath.Join(s.s.opts.Dir, "inside")); err != nil {
		t.Error(err)
	}
	s.begin("sleep 1000; echo no")
	if r := s.interrupt(); r.State != Idle || *r.ExitStatus != 130 {
		t.Errorf("interrupted: got %s", show(r))
	}
	s.wants("echo after; pwd", 0, "after\n"+s.s.opts.Dir+"\n")
	if r := s.do("exit 3"); r.State != Ended || *r.ExitStatus != 3 {
		t.Errorf("got %s", show(r))
	}
}

// The shell's folder may be a symbolic link, and may lie in a hidden folder.
func TestSandboxedFolder(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	work := filepath.Join(home, "work")
	if err := errors.Join(os.Mkdir(work, 0o755), os.WriteFile(filepath.Join(home, "key"), nil, 0o644), os.Symlink(work, filepath.Join(home, "link"))); err != nil {
		t.Fatal(err)
	}
	s := sandboxed(t, Options{Dir: filepath.Join(home, "link")})
	s.wants("pwd; echo x >made; ls -A; ls -A ~", 0, work+"\nmade\nwork\n")
	if _, err := os.Stat(filepath.Join(work, "made")); err != nil {
		t.Error(err)
	}
	if r := s.call(args{"shell": s.handle, "restart": true, "command": "ls"}); r.Output != "made\n" || r.Folder != work {
		t.Errorf("restarted: got %s", show(r))
	}
}

// A process that leaves its session does not leave the sandbox.
func TestSandboxEndsEverything(t *testing.T) {
	s := sandboxed(t, Options{})
	mark := "7919." + strings.TrimLeft(s.process().token[:9], "0") // the argument of sleep, by which the test finds the processes
	s.do("setsid sleep " + mark + " & sleep " + mark + " &")
	pids := sleeping(t, mark, 2)
	s.s.Close()
	allGone(t, pids)
}

func TestSandboxOfAKilledParent(t *testing.T) {
	sandboxed(t, Options{})
	cmd, _, text := parent(t, "sandbox")
	pid := numbers(t, strings.Fields(text)[0])[0]
	pids := descendants(t, pid)
	if len(pids) < 4 {
		t.Fatalf("got %q, and the processes %v", text, pids)
	}
	cmd.Process.Signal(syscall.SIGKILL)
	allGone(t, append(pids, pid))
}

// sleeping waits for n processes with the command line "sleep mark" and returns their ids.
func sleeping(t *testing.T, mark string, n int) (pids []int) {
	t.Helper()
	polltest.UntilNil(t, func() error {
		pids = pids[:0]
		for _, pid := range pidNames(t) {
			if line, _ := os.ReadFile("/proc/" + pid + "/cmdline"); string(line) == "sleep\x00"+mark+"\x00" {
				pids = append(pids, numbers(t, pid)...)
			}
		}
		if len(pids) != n {
			return fmt.Errorf("the processes %v sleep, want %d", pids, n)
		}
		return nil
	})
	return pids
}

func descendants(t *testing.T, of int) (pids []int) {
	family := []int{of}
	for more := true; more; {
		more = false
		for _, name := range pidNames(t) {
			pid := numbers(t, name)[0]
			if fields := stat(pid); len(fields) > 2 && !slices.Contains(family, pid) && slices.Contains(family, numbers(t, fields[1])[0]) {
				family, pids, more = append(family, pid), append(pids, pid), true
			}
		}
	}
	return pids
}

func pidNames(t *testing.T) (all []string) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Trim(e.Name(), "0123456789") == "" {
			all = append(all, e.Name())
		}
	}
	return all
}

func TestTool(t *testing.T) {
	for _, revision := range mcp.Revisions() {
		t.Run(string(revision), func(t *testing.T) {
			w := open(t, Options{})
			c, err := client.Dial(t.Context(), w.s, &client.Options{Wire: client.Wire{Revision: revision}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			tools, err := client.All(c.Tools(t.Context()))
			if err != nil || len(tools) != 1 || tools[0].Name != "run" {
				t.Fatalf("got %+v, %v", tools, err)
			}
			if a := tools[0].Annotations; revision > mcp.Revision20241105 && (*a.ReadOnlyHint || !*a.DestructiveHint || *a.IdempotentHint || !*a.OpenWorldHint) {
				t.Errorf("got %+v", a)
			}
			text, err := client.Call[*mcp.CallToolResult](t.Context(), c, "run", args{"command": "printf hello; (exit 2)"})
			if err != nil || text.IsError {
				t.Fatal(text, err)
			}
			var handle string
			for handle = range w.s.shells {
			}
			if want := "hello\n[shell " + handle + " in " + w.s.opts.Dir + ": exit status 2]"; text.Content[0].Text != want {
				t.Errorf("got %q, want %q", text.Content[0].Text, want)
			}
		})
	}
}

// The sandbox hides the socket, the state and the configuration of dowel, also below the shell's
// own folder, unless the shell works there.
func TestSandboxHidesDowel(t *testing.T) {
	home := t.TempDir()
	state, config := filepath.Join(home, ".local", "state", "dowel"), filepath.Join(home, "conf", "dowel")
	for _, folder := range []string{state, config} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "conf"))
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("XDG_RUNTIME_DIR", "")
	folders := dowelFolders([]string{home})
	if got, want := strings.Join(hideFolders(home, folders), " "), "--tmpfs "+config+" --tmpfs "+state; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := strings.Join(hideFolders(state, folders), " "), "--tmpfs "+config; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
