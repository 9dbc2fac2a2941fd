//go:build unix

package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// forShells runs a test with bash and with the system's sh.
func forShells(t *testing.T, o Options, test func(s session)) {
	for _, name := range []string{"bash", "sh"} {
		t.Run(name, func(t *testing.T) {
			o := o
			o.Shell = name
			test(open(t, o).session())
		})
	}
}

func TestCommands(t *testing.T) {
	forShells(t, Options{}, func(s session) {
		for _, c := range []struct {
			command string
			status  int
			output  string
		}{
			{"echo hello", 0, "hello\n"},
			{"printf 'no newline'", 0, "no newline"},
			{"false", 1, ""},
			{"(exit 77)", 77, ""},
			{"echo out; echo err >&2; echo out", 0, "out\nerr\nout\n"},
			{"echo one\necho two\n\n", 0, "one\ntwo\n"},
			{"  # a comment", 0, ""},
			{"echo a \\", 0, "a\n"},
			{`echo 'single' "double" \'`, 0, "single double '\n"},
			{"echo '''' \"'\" 'it'\\''s'", 0, " ' it's\n"},
			{`printf 'a\000b'`, 0, "a␀b"},
			{`printf 'x\377\376y\303'`, 0, "x\uFFFDy\uFFFD"},
			{`printf '\036\037\036'`, 0, "\x1e\x1f\x1e"},
			{"echo ünï 日本 🎉", 0, "ünï 日本 🎉\n"},
			{"cat; wc -c", 0, "0\n"},
			{"read x; echo $?", 0, "1\n"},
			{"cat <<EOF\nin a document\nEOF", 0, "in a document\n"},
			{"exec >/dev/null; echo hidden", 0, ""},
			{"exec 2>&- </dev/zero; echo shown", 0, "shown\n"},
			{"exec 7>&- 8>&-; echo shown", 0, "shown\n"},
			{"PS1='prompt> ' PS2='more> '", 0, ""},
			{"echo 'two\nlines'", 0, "two\nlines\n"},
			{"PROMPT_COMMAND='echo prompt'", 0, ""},
			{"PROMPT_COMMAND=", 0, ""},
			{"trap 'echo trapped' USR1; kill -USR1 $$", 0, "trapped\n"},
			{"IFS=0123456789", 0, ""},
			{"(exit 101)", 101, ""},
			{"IFS=' '; set -u", 0, ""},
			{"set +u; set -f; set -C", 0, ""},
			{"set +f +C; alias printf=false pwd=false eval=false", 0, ""},
			{"set -e", 0, ""},
			{"false", 1, ""},
			{"set -e; false || echo went on", 0, "went on\n"},
			{"break 2>/dev/null", 0, ""},
			{"nosuchcommand 2>/dev/null", 127, ""},
			{"exec 2>/dev/null; kill -INT $$; echo not reached", 130, ""},
		} {
			s.wants(c.command, c.status, c.output)
			s.wants("echo after", 0, "after\n")
		}
	})
}

// An error in a command's text is an error of this command only.
func TestSyntaxErrors(t *testing.T) {
	forShells(t, Options{}, func(s session) {
		for _, command := range []string{`echo "open`, `echo 'open`, "echo `open", "echo $(open", "if true", "for", ")", "{ echo", "echo )", "case x in"} {
			r := s.do(command)
			if r.State != Idle || r.ExitStatus == nil || *r.ExitStatus == 0 || r.Output == "" {
				s.Errorf("%q: got %s", command, show(r))
			}
			s.wants("echo after", 0, "after\n")
		}
		r := s.do("cat <<EOF\nwithout an end")
		if r.State != Idle || *r.ExitStatus != 0 || !strings.Contains(r.Output, "without an end\n") {
			s.Errorf("an open here-document: got %s", show(r))
		}
		s.wants("echo after", 0, "after\n")
		s.fail(args{"shell": s.handle, "command": "echo a\x00b"}, "NUL character")
	})
}

func TestStateIsKept(t *testing.T) {
	forShells(t, Options{Env: map[string]string{"GIVEN": "by an option"}}, func(s session) {
		s.wants(`echo "$GIVEN"`, 0, "by an option\n")
		dir := filepath.Join(s.s.opts.Dir, "a b\n\"c'")
		if err := os.Mkdir(dir, 0o755); err != nil {
			s.Fatal(err)
		}
		if r := s.do("cd a*; v=1; export W=2; f() { echo f; }; umask 027; exec 5>five; alias l='echo aliased'"); r.Folder != dir {
			s.Errorf("the folder is %q, want %q", r.Folder, dir)
		}
		s.wants(`echo $v $(sh -c 'echo $W'); f; umask; echo x >&5; cat five; l`, 0, "1 2\nf\n0027\nx\naliased\n")
		other := s.fixture.session()
		other.wants(`echo "$v $W"`, 0, " \n")
		s.wants("false", 1, "")
		s.wants("echo $v", 0, "1\n")
	})
}

func TestBashAlone(t *testing.T) {
	s := open(t, Options{}).session()
	s.wants("return 5 2>/dev/null; echo $?", 0, "2\n")
	s.wants("set -o pipefail; shopt -s extglob", 0, "")
	s.wants("false | true", 1, "")
	s.wants("trap 'echo debug' DEBUG", 0, "")
	s.wants("echo x", 0, "debug\nx\n")
	s.wants("trap - DEBUG", 0, "debug\n")
	s.wants("trap 'echo error' ERR; false", 1, "error\n")
	s.wants("trap - ERR; set -x", 0, "")
	s.wants("echo x", 0, "++ echo x\nx\n")
	s.wants("exec 6>trace; BASH_XTRACEFD=6; echo y", 0, "++ exec\n++ BASH_XTRACEFD=6\ny\n")
	s.wants("set +x; BASH_XTRACEFD=; echo !$ !!", 0, "!$ !!\n")
	s.do("exec 10>ten 11>eleven 12>twelve 13>thirteen 14>fourteen 255>more") // the shell needs some of these itself
	s.wants("exec 200>lock; echo x >&200", 0, "")
	s.wants("set -H; echo y >&200; cat lock; echo !!", 0, "x\ny\n!!\n")
	s.wants("echo `grep -c . trace`; unset PWD; shopt -u expand_aliases", 0, strings.TrimSpace(s.do("grep -c . trace").Output)+"\n")
	s.wants("set -m; (exit 4)", 4, "")
	if r := s.do("declare; set; export; history; alias; jobs"); strings.Contains(r.Output, s.process().token) {
		t.Error("a command can read the token")
	}
}

// A thousand commands in a row leave nothing behind: no goroutine, no descriptor, no process, no
// memory, here and in the shell.
func TestThousandCommands(t *testing.T) {
	server, err := New(Options{MaxOutput: 1000})
	if err != nil {
		t.Fatal(err)
	}
	s := join(t, server, client.Options{}).session()
	var warm usage
	began := time.Now()
	for i := range 1000 {
		text := "i=$((i+1)); echo $i; (exit %d)"
		if i%10 == 5 {
			text = "i=$((i+1)); echo $i; cat /dev/null | cat; { sleep 0 & } 2>/dev/null; wait; (exit %d)"
		}
		s.wants(fmt.Sprintf(text, i%200), i%200, fmt.Sprintf("%d\n", i+1))
		if i == 200 {
			warm = s.usage()
		}
	}
	took, now := time.Since(began), s.usage()
	t.Logf("took %v; after 200: %+v, after 1000: %+v", took, warm, now)
	if now.goroutines > warm.goroutines+2 || now.files > warm.files+2 || now.heap > warm.heap+1<<20 ||
		now.shellFiles > warm.shellFiles+2 || now.shellMemory > warm.shellMemory+1<<20 || now.processes > 1 {
		t.Errorf("something grows: after 200 commands %+v, after 1000 %+v", warm, now)
	}
}

// usage is the resources that the test process and the shell hold. Values that only Linux reports
// are 0 elsewhere.
type usage struct {
	goroutines, files       int
	heap                    uint64
	shellFiles, shellMemory int // descriptors, bytes
	processes               int // of the shell's group
}

func (s session) usage() (u usage) {
	s.Helper()
	count := func(folder string) int {
		names, _ := os.ReadDir(folder)
		return len(names)
	}
	shell := fmt.Sprintf("/proc/%d/", s.process().child.PID())
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u = usage{goroutines: runtime.NumGoroutine(), heap: m.HeapAlloc, files: count("/proc/self/fd"), shellFiles: count(shell + "fd")}
	if statm, err := os.ReadFile(shell + "statm"); err == nil {
		var size, resident int
		fmt.Sscan(string(statm), &size, &resident)
		u.shellMemory = resident * os.Getpagesize()
	}
	u.processes = len(group(s.T, s.process().child.PID()))
	return u
}

func TestMuchOutput(t *testing.T) {
	forShells(t, Options{MaxOutput: 1000}, func(s session) {
		r := s.do("echo begin; head -c 4000000 /dev/zero | tr '\\000' x; echo; echo end")
		want := len("begin\n") + 4000000 + len("\nend\n") - 1000
		if r.State != Idle || r.Omitted != want || !strings.HasPrefix(r.Output, "begin\nxxx") || !strings.HasSuffix(r.Output, "xxx\nend\n") ||
			!strings.Contains(r.Output, fmt.Sprintf("[… %d characters omitted …]", want)) || len(r.Output) > 1100 {
			s.Errorf("got %s", show(r))
		}
		s.wants("echo after", 0, "after\n")
	})
}

func TestEndlessOutput(t *testing.T) {
	forShells(t, Options{MaxOutput: 1000}, func(s session) {
		s.begin("yes")
		for seen := 0; seen < 3; { // on a busy machine the command writes nothing in some calls
			r := s.call(args{"shell": s.handle, "timeout": 0.1})
			if r.State != Running || len(r.Output) > 1100 {
				s.Fatalf("got %s", show(r))
			}
			if r.Omitted > 0 {
				seen++
			}
		}
		if r := s.interrupt(); r.State != Idle || *r.ExitStatus != 130 || len(r.Output) > 1100 {
			s.Errorf("got %s", show(r))
		}
		s.wants("echo after", 0, "after\n")
	})
}

// A command's text goes through a pipe that holds less.
func TestLongCommand(t *testing.T) {
	forShells(t, Options{}, func(s session) {
		text := strings.Repeat("'x' ", 20_000)
		s.wants("f() { echo $#; }; f "+text, 0, "20000\n")
		s.fail(args{"shell": s.handle, "command": strings.Repeat("x", MaxCommand+1)}, "command")
	})
}

func TestBackgroundChild(t *testing.T) {
	forShells(t, Options{}, func(s session) {
		s.wants("mkfifo fifo", 0, "")
		r := s.do("(read x <fifo; echo late $x) & sleep 1000 & echo here")
		if r.State != Idle || *r.ExitStatus != 0 || !strings.Contains(r.Output, "here\n") {
			s.Fatalf("got %s", show(r))
		}
		s.wants("echo between", 0, "between\n")
		if r := s.do("echo word >fifo"); r.Output == "" {
			s.until("late word\n")
		} else if r.Output != "late word\n" {
			s.Errorf("got %s", show(r))
		}
	})
}

func TestTimeoutAndReadingMore(t *testing.T) {
	forShells(t, Options{}, func(s session) {
		s.wants("mkfifo first second third", 0, "") // one each: of a fifo, the next reader may see the end of the writer before
		r := s.call(args{"shell": s.handle, "command": "echo one; read x <first; echo two $x; read x <second; echo three; (exit 9)", "timeout": 0})
		if r.State != Running || r.ExitStatus != nil || !strings.Contains(r.Note, "still running") {
			s.Fatalf("got %s", show(r))
		}
		if r.Output == "" {
			_, r = s.until("one\n")
		}
		if r.State != Running {
			s.Fatalf("got %s", show(r))
		}
		s.fail(args{"shell": s.handle, "command": "echo no"}, "is busy")
		feed := func(fifo string) {
			if err := os.WriteFile(filepath.Join(s.s.opts.Dir, fifo), []byte("word\n"), 0); err != nil {
				s.Fatal(err)
			}
		}
		feed("first")
		if got, r := s.until("two word\n"); got != "two word\n" || r.State != Running {
			s.Fatalf("got %q, %s", got, show(r))
		}
		feed("second")
		if r = s.call(args{"shell": s.handle, "command": ""}); r.State != Idle || *r.ExitStatus != 9 || r.Output != "three\n" {
			s.Fatalf("got %s", show(r))
		}
		if r := s.do(""); r.Note != "no command is running" || r.ExitStatus != nil {
			s.Errorf("got %s", show(r))
		}
		s.call(args{"shell": s.handle, "command": "read x <third; echo unseen; (exit 8)", "timeout": 0})
		feed("third")
		current := s.process().currentCommand()
		polltest.Until(s, "the end of the command", func() bool { return isDone(current) })
		r = s.do("echo next")
		if r.State != Idle || *r.ExitStatus != 0 || !strings.HasSuffix(r.Output, "next\n") || !strings.Contains(r.Note, "the previous command ended with exit status 8") {
			s.Errorf("got %s", show(r))
		}
	})
}

func isDone(c *command) bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
