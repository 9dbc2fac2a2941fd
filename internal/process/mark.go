package process

import (
	"crypto/rand"
	"os"
	"runtime"
	"strings"
)

// markKey is the environment variable by which the processes of a tree are found after they have
// left its process group. Its value is a list of marks, separated by colons. A child adds its mark
// to the marks of this process: if this process is itself in the tree of another one, everything
// that it starts is in that tree too.
const markKey = "DOWEL_TREE"

// newMark returns a mark for a new tree, or "" on systems where processes cannot be found by it.
// Marks are random, so that no process of another program carries one.
func newMark() string {
	if runtime.GOOS != "linux" {
		return ""
	}
	return rand.Text()
}

// keepMark is the last mark of a child that may keep its detached processes. If that child uses
// this package too, so may its own children: "dowel serve shell" keeps the daemons of its shells if
// the entry that starts it keeps daemons.
const keepMark = "keep"

// markTree returns the mark of a new tree, or "" if its detached processes are kept, and the
// environment of its child. A value of markKey in env has no effect.
func markTree(env []string, keepDetached bool) (string, []string) {
	var marks []string
	if outer := os.Getenv(markKey); outer != "" {
		marks = strings.Split(outer, ":")
	}
	mark := ""
	if n := len(marks); n > 0 && marks[n-1] == keepMark {
		marks = marks[:n-1]
	} else if !keepDetached {
		mark = newMark()
	}
	switch {
	case mark != "":
		marks = append(marks, mark)
	case keepDetached:
		marks = append(marks, keepMark)
	}
	if len(marks) == 0 && os.Getenv(markKey) == "" {
		return "", env
	}
	return mark, append(env, markKey+"="+strings.Join(marks, ":"))
}
