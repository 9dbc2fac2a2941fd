package shell

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// A mark is a message in the stream of a shell's output: a command begins, or has ended. Its bytes
// are
//
//	RS token ":" number ":" "b" US                 the command with this number begins
//	RS token ":" number ":" status ":" folder US   the command has ended
//
// with a token that no command prints by accident. The shell writes a mark with one write, so other
// output cannot get between its bytes.
type mark struct {
	number int
	begin  bool
	status int
	folder string
}

const (
	recordSeparator = 0x1e
	unitSeparator   = 0x1f
	maxMark         = 8 << 10 // bytes
)

// newToken returns 38 random decimal digits. After an interrupt, a shell may run only the rest of a
// line; if the rest begins with the token, the shell finds no program of that name.
func newToken() string {
	n, err := rand.Int(rand.Reader, new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil))
	if err != nil {
		panic(err) // impossible: reading from crypto/rand does not fail
	}
	return fmt.Sprintf("%038d", n)
}

// splitter separates marks from text in a stream.
type splitter struct {
	prefix []byte // the first bytes of each mark
	held   []byte // bytes that may become a mark
}

func newSplitter(token string) *splitter {
	return &splitter{prefix: []byte(string(rune(recordSeparator)) + token + ":")}
}

// splitMarks reads the next part of the stream and calls text and found in its order. They must not
// keep their arguments. A mark may span several parts.
func (s *splitter) splitMarks(data []byte, text func([]byte), found func(mark)) {
	if len(s.held) > 0 {
		data = append(s.held, data...)
		s.held = nil
	}
	for {
		at := bytes.IndexByte(data, recordSeparator)
		if at < 0 {
			at = len(data)
		}
		if at > 0 {
			text(data[:at])
		}
		if data = data[at:]; len(data) == 0 {
			return
		}
		m, size, more := s.parseMark(data)
		switch {
		case more:
			s.held = bytes.Clone(data)
			return
		case size == 0:
			text(data[:1])
			data = data[1:]
		default:
			found(m)
			data = data[size:]
		}
	}
}

// parseMark reads the mark at the beginning of data. size is 0 if data does not begin with one;
// more is true if it could with more bytes.
func (s *splitter) parseMark(data []byte) (m mark, size int, more bool) {
	if len(data) < len(s.prefix) {
		return m, 0, bytes.HasPrefix(s.prefix, data)
	}
	if !bytes.HasPrefix(data, s.prefix) {
		return m, 0, false
	}
	end := bytes.IndexByte(data, unitSeparator)
	if end < 0 {
		return m, 0, len(data) < maxMark
	}
	number, rest, _ := strings.Cut(string(data[len(s.prefix):end]), ":")
	status, folder, _ := strings.Cut(rest, ":")
	var err error
	if m.number, err = strconv.Atoi(number); err != nil {
		return m, 0, false
	}
	if m.begin = status == "b"; !m.begin {
		if m.status, err = strconv.Atoi(status); err != nil {
			return m, 0, false
		}
	}
	m.folder = strings.ToValidUTF8(folder, "\uFFFD")
	return m, end + 1, false
}

// streamFD is the descriptor of the output stream. The shell's own stdout and stderr are the null
// device, because prompts, traces (set -x) of the lines below and the output of traps between
// commands do not belong to any command.
const streamFD = "7"

// startLine prepares a shell. The caller sends an endLine with number 0 after it, to learn when the
// shell is ready.
func startLine(bash bool) string {
	options := "set +m"
	if bash {
		options = "unset HISTFILE;set +m +H +o history"
	}
	return options + ";unset TMOUT PROMPT_COMMAND MAIL MAILPATH MAILCHECK;PS1= PS2=;exec " + streamFD + ">&1 >/dev/null 2>&1\n"
}

// commandLine makes the shell evaluate a command with $? set to the status of the previous one. The
// command is a quoted string, so an open quote or here-document in it is the command's own error.
// The redirections apply to eval as a whole, and end with it.
func commandLine(token string, number, status int, command string) string {
	if strings.HasSuffix(command, `\`) {
		command += "\n" // some shells end if no line follows a backslash
	}
	before := ""
	if status != 0 {
		before = fmt.Sprintf("(exit %d);", status)
	}
	return fmt.Sprintf(`\command printf \\036%%s:%%s:b\\037 %s %d >&%s;%s\eval '%s'</dev/null >&%s 2>&1 %s>&-`+"\n",
		token, number, streamFD, before, strings.ReplaceAll(command+"\n", `'`, `'\''`), streamFD, streamFD)
}

// endLine makes the shell report how a command ended. It is a separate line, because an interrupt
// or an error discards the line that the shell is executing. It is sent after the command has
// begun, because some shells also discard the lines that they have read ahead.
func endLine(token string, number int) string {
	return fmt.Sprintf(`\command printf \\036%%s:%%s:%%s:%%s\\037 %s %d "$?" "$PWD" >&%s;set +e`+"\n", token, number, streamFD)
}

// againLine is an endLine for a shell that may have been interrupted while it read the previous
// one, so that it takes any rest of that line for a command. If the rest has an open double quote,
// the quote below closes it; otherwise the quote is in a comment.
func againLine(token string, number int) string {
	return "\n#\"\n" + endLine(token, number)
}
