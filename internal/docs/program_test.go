package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// programPages are the pages with command lines. dowel must understand the lines in sh blocks. The
// lines in console blocks are run and must print the lines that follow them.
var programPages = []string{"README.md", "docs/guide-program.md", "docs/guide-access-tokens.md", "docs/guide-chat.md"}

func TestCommandLines(t *testing.T) {
	folder := t.TempDir()
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-w", "-o", folder+string(filepath.Separator), "./cmd/dowel")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	lines, sessions := 0, 0
	for _, name := range programPages {
		for _, b := range blocks(t, name, "sh") {
			for line := range strings.Lines(b.text) {
				for _, words := range commands(line) {
					lines++
					checkUnderstood(t, filepath.Join(folder, "dowel"), b, words)
				}
			}
		}
		for _, b := range blocks(t, name, "console") {
			sessions++
			t.Run(fmt.Sprintf("%s:%d", b.page, b.line), func(t *testing.T) {
				t.Parallel()
				runBlock(t, folder, b)
			})
		}
	}
	if lines < 15 || sessions < 5 {
		t.Errorf("only %d command lines and %d sessions were found", lines, sessions)
	}
}

// checkUnderstood checks that dowel shows help for a command line, which it does if it knows the
// command and its flags. Command lines that need no setup and end by themselves are also run.
func checkUnderstood(t *testing.T, dowel string, b block, words []string) {
	t.Helper()
	out, err := exec.Command(dowel, asksHelp(words)...).CombinedOutput()
	alone := len(words) > 1 && words[0] != "serve" && words[0] != "watch" && strings.HasPrefix(words[1], "everything")
	if err == nil && alone {
		out, err = exec.Command(dowel, words...).CombinedOutput()
	}
	if err != nil {
		t.Errorf("%s:%d: dowel rejects %q: %v\n%s", b.page, b.line, words, err, out)
	}
}

// asksHelp adds --help before the command of a server.
func asksHelp(words []string) []string {
	at := slices.Index(words, "--")
	if at < 0 {
		at = len(words)
	}
	return slices.Insert(slices.Clone(words), at, "--help")
}

var (
	word     = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)
	redirect = regexp.MustCompile(`^[12]?>`)
	unquoted = strings.NewReplacer(`'`, "", `"`, "")
)

// commands returns the arguments of each dowel that a shell line runs.
func commands(line string) (all [][]string) {
	line = strings.ReplaceAll(line, "go run ./cmd/dowel", "dowel")
	var words []string
	end := func() {
		if len(words) > 1 && words[0] == "dowel" {
			all = append(all, words[1:])
		}
		words = nil
	}
	for _, w := range word.FindAllString(line, -1) {
		w, last := strings.CutSuffix(w, ";")
		switch {
		case strings.HasPrefix(w, "#"):
			end()
			return all
		case w == "|", w == "||", w == "&&":
			last = true
		case redirect.MatchString(w):
		default:
			words = append(words, unquoted.Replace(w))
		}
		if last {
			end()
		}
	}
	end()
	return all
}

// runBlock runs a block's command lines in a new folder and compares their output on both streams
// with the block. There "…" matches any text, and any lines if it is alone on a line.
func runBlock(t *testing.T, folder string, b block) {
	home := t.TempDir()
	for i, part := range strings.Split("\n"+b.text, "\n$ ") {
		line, want, _ := strings.Cut(part, "\n")
		if i == 0 {
			if part != "" {
				t.Errorf("%s:%d: the block does not begin with a command line", b.page, b.line)
			}
			continue
		}
		shell := exec.Command("sh", "-c", line)
		shell.Dir = home
		shell.Env = append(os.Environ(), "PATH="+folder+string(filepath.ListSeparator)+os.Getenv("PATH"), "HOME="+home, "XDG_DATA_HOME="+home,
			"XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home, "XDG_RUNTIME_DIR="+home)
		out, _ := shell.CombinedOutput() // the block's output shows failures
		if !outputPattern(want).Match(out) {
			t.Errorf("%s:%d: $ %s\nprints\n%s\nand not\n%s", b.page, b.line, line, out, want)
		}
	}
}

func outputPattern(want string) *regexp.Regexp {
	var p strings.Builder
	p.WriteString(`^`)
	for line := range strings.Lines(strings.TrimRight(want, "\n") + "\n") {
		switch strings.TrimSpace(line) {
		case "":
			p.WriteString(`\s*?\n?`)
		case "…":
			p.WriteString(`(?:.*\n)*`)
		default:
			p.WriteString(strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(line, "\n")), "…", ".*") + ` *\n`)
		}
	}
	return regexp.MustCompile(p.String() + `\n*$`)
}
