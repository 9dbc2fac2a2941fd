//go:build unix

package shell

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Damage that a command does to the shell itself does not affect the commands after it.
func TestShellIsMeddledWith(t *testing.T) {
	s := open(t, Options{}).session()
	for _, command := range []string{
		`PS1='$(echo prompt)' PS2='more' PS4='trace' PS0='before'`,
		`PROMPT_COMMAND=('echo one' 'echo two')`,
		`printf() { echo mine; }; eval_() { :; }; set() { :; }; exec() { :; }`,
		`unset -f printf set exec nosuchfunction command eval`,
		`enable -n printf`,
		`enable printf; enable -n cd; enable cd`,
		`shopt -s nullglob dotglob failglob`,
		`shopt -u nullglob dotglob failglob; set -f; set -C; set +f +C`,
		`set -n`,
		`set -v; set +v`,
		`set -o posix; set +o posix`,
		`set -u; set +u`,
		`trap 'echo left' EXIT RETURN`,
		`trap - EXIT RETURN`,
		`trap '' PIPE TERM HUP; trap - PIPE TERM HUP`,
		`hash -r; PATH=; PATH=/usr/local/bin:/usr/bin:/bin`,
		`LANG=C LC_ALL=C; unset LANG LC_ALL`,
		`IFS=; IFS=x; unset IFS`,
		`readonly PS1 PROMPT_COMMAND IFS`,
		`alias exec=false eval=false command=false set=false; shopt -s expand_aliases`,
		`exec 8>/dev/null 9>&8; exec 8>&- 9>&-`,
		`exec >/dev/full 2>&1`,
		`exec 0<&- 1>&- 2>&-`,
		`history -c; history -w /dev/null; fc -l`,
		`suspend`,
		`disown -a; wait; jobs; fg; bg`,
		`TMOUT=1`,
		`cd /; cd - >/dev/null; pushd /tmp >/dev/null; popd >/dev/null`,
		`. /dev/null; source /dev/stdin`,
		"eval 'echo \"open'",
		"cat <<'EOF' <<EOF2\nnever\nends",
		"\x01\x02\x03 2>/dev/null",
		"\\",
		"#",
		"# '",
		"'\n",
		"(((",
		"$(", "${", "$((", "<(", "<<", "<<<", "&&", ";;", "!", "{", "function", "coproc", "[[", "time",
	} {
		r := s.do(command)
		if r.State != Idle || r.ExitStatus == nil || strings.Contains(r.Output, s.process().token) {
			s.Fatalf("%q: got %s", command, show(r))
		}
		s.wants("echo after", 0, "after\n")
	}
	s.wants("(exit 7)", 7, "")
	s.wants("echo $?", 0, "7\n")
	s.wants("echo $?", 0, "0\n")
}

// A command can make the shell deaf, as one can at a terminal. The call ends even so, and a restart
// cures it.
func TestShellIsDeaf(t *testing.T) {
	for _, command := range []string{
		"command() { :; }",
		"eval() { :; }; command() { :; }",
		"shopt -s extdebug; trap false DEBUG",
		"ulimit -n 3",
		"(sleep 0.02; kill -STOP $$) & wait",
	} {
		s := open(t, Options{}).session()
		s.call(args{"shell": s.handle, "command": command, "timeout": 0.2})
		if r, err := s.try(s.Context(), args{"shell": s.handle, "command": "echo on", "timeout": 0.2}); err == nil && r.State != Running {
			s.Errorf("%q: got %s", command, show(r))
		}
		r, err := s.try(s.Context(), args{"shell": s.handle, "command": "ctrl+c", "timeout": 0.2})
		if said := r.Note + errorText(err); r.State != Idle && !strings.Contains(said, "restart") {
			s.Errorf("%q: after ctrl+c, got %s %s", command, show(r), said)
		}
		if r := s.call(args{"shell": s.handle, "command": "echo on", "restart": true}); r.State != Idle || r.Output != "on\n" {
			s.Errorf("%q: restarted, got %s", command, show(r))
		}
	}
}

// A command that reads from the user gets an end of file and does not hang.
func TestReadingStdin(t *testing.T) {
	forShells(t, Options{}, func(s session) {
		for _, c := range []struct {
			command string
			status  int
			output  string
		}{
			{"cat", 0, ""},
			{"read x", 1, ""},
			{"read x || echo nobody; cat; echo end", 0, "nobody\nend\n"},
			{"while read x; do echo $x; done; echo end", 0, "end\n"},
			{"bash --norc -i 2>/dev/null; bash; sh; echo end", 0, "end\n"},
			{"cat </dev/tty 2>/dev/null || echo no terminal", 0, "no terminal\n"},
			{"test -t 0 || test -t 1 || test -t 2 || echo no terminal", 0, "no terminal\n"},
			{"echo given | cat; cat <<EOF\ndocument\nEOF", 0, "given\ndocument\n"},
			{"(sleep 0.01; cat) & wait $!; echo end", 0, "end\n"},
		} {
			r := s.do(c.command)
			if r.State != Idle || *r.ExitStatus != c.status || !strings.HasSuffix(r.Output, c.output) {
				s.Errorf("%q: got %s", c.command, show(r))
			}
		}
	})
}

func TestBinaryOutput(t *testing.T) {
	forShells(t, Options{}, func(s session) {
		r := s.do("head -c 1000000 /dev/urandom; printf '\\036\\037%s' end")
		if r.State != Idle || *r.ExitStatus != 0 || !strings.HasSuffix(r.Output, "\x1e\x1fend") || !utf8.ValidString(r.Output) || strings.Contains(r.Output, "\x00") {
			s.Errorf("got %s", show(r))
		}
		forged := "printf '\\0361234567890:1:0:/\\037\\036" + strings.Repeat("1", 38) + ":2:b\\037'"
		if r := s.do(forged); r.State != Idle || len(r.Output) != 1+len("1234567890:1:0:/")+2+38+len(":2:b")+1 {
			s.Errorf("a forged mark: got %s", show(r))
		}
		s.wants("echo after", 0, "after\n")
	})
}

// A background process that prints without end neither holds up commands nor fills the memory.
func TestEndlessBackgroundOutput(t *testing.T) {
	forShells(t, Options{MaxOutput: 1000}, func(s session) {
		s.do("yes 0123456789 & pid=$!")
		omitted := 0
		for end := time.Now().Add(bound); omitted < 1<<20 && time.Now().Before(end); {
			r := s.do("sleep 0.01; (exit 3)")
			if r.State != Idle || *r.ExitStatus != 3 || len(r.Output) > 1100 {
				s.Fatalf("got %s", show(r))
			}
			omitted += r.Omitted
		}
		if omitted < 1<<20 {
			s.Errorf("%d characters were left out", omitted)
		}
		s.do("kill $pid; wait")
		s.wants("echo after", 0, "after\n")
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
