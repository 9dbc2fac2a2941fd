package process

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// maxTreeLook limits the processes that a look at a tree visits.
const maxTreeLook = 500

// findInstall looks for a package runner in the tree, and for the server's own process below it, of
// which it returns the id. The runner has no name if there is none. If the kernel does not list the
// children of processes, line decides, which is the runner's command line.
func (t *tree) findInstall(line []string) (found Install, serving string) {
	root := strconv.Itoa(t.pid)
	if _, err := os.ReadFile("/proc/" + root + "/task/" + root + "/children"); err != nil {
		return guessInstall(line)
	}
	look := treeLook{stdin: t.stdinLink}
	visits := maxTreeLook
	look.visitProcess(root, false, &visits)
	return Install{Runner: look.runner, Activity: look.activity}, look.serving
}

// visitProcess notes a process and its descendants.
func (l *treeLook) visitProcess(pid string, belowRunner bool, visits *int) {
	if *visits--; *visits < 0 || l.serving != "" {
		return
	}
	p, ok := readFacts(pid)
	if !ok {
		return
	}
	belowRunner = l.noteProcess(p, belowRunner)
	tasks, err := os.ReadDir("/proc/" + pid + "/task")
	if err != nil {
		return
	}
	for _, task := range tasks {
		children, _ := os.ReadFile("/proc/" + pid + "/task/" + task.Name() + "/children") // a thread that is gone has none
		for _, child := range strings.Fields(string(children)) {
			l.visitProcess(child, belowRunner, visits)
		}
	}
}

// readFacts reads the facts about a process; ok is false if it is a zombie or gone.
func readFacts(pid string) (p processFacts, ok bool) {
	cmdline, err := os.ReadFile("/proc/" + pid + "/cmdline")
	if err != nil || len(cmdline) == 0 {
		return p, false
	}
	p.pid, p.argv = pid, splitTitle(cmdline)
	p.stdin, _ = os.Readlink("/proc/" + pid + "/fd/0")
	environ, _ := os.ReadFile("/proc/" + pid + "/environ") // of another user: unknown
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		switch key, value, _ := strings.Cut(string(entry), "="); key {
		case "npm_lifecycle_event":
			p.script = value
		case "npm_package_name":
			p.pkg = value
		}
	}
	return p, true
}
