package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// fakeSystemctl stands for systemd's user manager, which does not run in a container: it starts and
// ends the unit's program.
const fakeSystemctl = `#!/bin/sh
echo "$*" >> "$HOME/systemctl.log"
unit="$XDG_CONFIG_HOME/systemd/user/dowel.service"
case "$2" in
restart)
	[ ! -e "$HOME/pid" ] || { kill "$(cat "$HOME/pid")"; while kill -0 "$(cat "$HOME/pid")" 2>/dev/null; do sleep 0.1; done; }
	sed -n 's/^ExecStart=/exec /p' "$unit" > "$HOME/start.sh"
	setsid sh "$HOME/start.sh" > "$HOME/service.log" 2>&1 < /dev/null &
	echo $! > "$HOME/pid" ;;
disable)
	kill "$(cat "$HOME/pid")" ;;
esac
`

func TestServiceOfSystemd(t *testing.T) {
	t.Parallel()
	p := newTestUser(t)
	p.writeFile(filepath.Join(p.home, "bin", "systemctl"), fakeSystemctl)
	if err := os.Chmod(filepath.Join(p.home, "bin", "systemctl"), 0o700); err != nil {
		t.Fatal(err)
	}
	dowel := func(words ...string) output {
		cmd := p.newCommand(words...)
		cmd.Env = append(cmd.Env, "PATH="+filepath.Join(p.home, "bin")+":"+os.Getenv("PATH"))
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // ProcessState has the result
		return output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
	}
	unit := filepath.Join(p.home, "systemd", "user", "dowel.service")
	if out := dowel("service", "install", "--dry-run", "--", "--http", "0"); out.code != 0 || !strings.Contains(out.stdout, `"up" "--http" "0"`) {
		t.Errorf("--dry-run: %+v", out)
	}
	if out := dowel("service", "install", "--", "--htp", "0"); out.code != exit.Usage || !strings.Contains(out.stderr, "--htp") {
		t.Errorf("a wrong flag: %+v", out)
	}
	if out := dowel("service", "remove"); out.code != 0 || !strings.Contains(out.stdout, "not installed") {
		t.Errorf("remove with nothing installed: %+v", out)
	}
	if _, err := os.Stat(unit); err == nil {
		t.Error("the unit exists before the service is installed")
	}
	servicePID := func() int {
		text, _ := os.ReadFile(filepath.Join(p.home, "pid"))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		killLater(t, pid)
		return pid
	}
	for range 2 { // the second time, the service restarts
		if out := dowel("service", "install", "--", "--http", "0"); out.code != 0 || !strings.Contains(out.stdout, "is installed.\nIt runs as process "+strconv.Itoa(servicePID())) {
			t.Fatalf("install: %+v", out)
		}
	}
	pid := servicePID()
	if out := dowel("service", "remove"); out.code != 0 {
		t.Errorf("remove: %+v", out)
	}
	polltest.Until(t, "the service has ended", func() bool { return !isRunning(pid) })
	if _, err := os.Stat(unit); err == nil {
		t.Error("the unit is still there")
	}
	log, err := os.ReadFile(filepath.Join(p.home, "systemctl.log"))
	if want := strings.Repeat("--user daemon-reload\n--user enable dowel.service\n--user restart dowel.service\n", 2) + "--user disable --now dowel.service\n--user daemon-reload\n"; err != nil || string(log) != want {
		t.Errorf("systemctl was called with %q, %v, want %q", log, err, want)
	}

	p.startDaemon()
	if out := dowel("service", "install"); out.code == 0 || !strings.Contains(out.stderr, "dowel down") {
		t.Errorf("install beside a running dowel: %+v", out)
	}
}
