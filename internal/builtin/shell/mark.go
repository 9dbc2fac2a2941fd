package shell

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// A mark stands in the stream of a shell's output where a command begins or ends. On the wire it is
//
//	RS token ":" number ":" "b" US              the command of this number begins
//	RS token ":" number ":" status ":" folder US   it has ended
//
// with a token that no command prints by accident. Each is written at once, so nothing gets into it.
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

// newToken returns 38 decimal digits. They are no name of a program: the line that holds them is harmless, from wherever
// on it is read.
func newToken() string {
	n, err := rand.Int(rand.Reader, new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil))
	if err != nil {
		panic(err) // which package rand rules out
	}
	return fmt.Sprintf("%038d", n)
}

// splitter tells marks from text.
type splitter struct {
	prefix []byte // of a mark
	held   []byte // what may become a mark
}

func newSplitter(token string) *splitter {
	return &splitter{prefix: []byte(string(rune(recordSeparator)) + token + ":")}
}

// split calls text and found in the order of the stream. What they are given is valid until they return.
func (s *splitter) split(data []byte, text func([]byte), found func(mark)) {
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
		m, size, more := s.parse(data)
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

// parse reads the mark that data begins with. Its size is 0 where that is none; more says that it could become one.
func (s *splitter) parse(data []byte) (m mark, size int, more bool) {
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

// The descriptor of the stream. The shell's own stdout and stderr lead nowhere: prompts, traces of the lines below and what
// traps print between commands are nobody's output.
const streamFD = "7"

// startLine makes a shell ready. It is followed by an endLine, whose mark says so.
func startLine(bash bool) string {
	options := "set +m"
	if bash {
		options = "unset HISTFILE;set +m +H +o history"
	}
	return options + ";unset TMOUT PROMPT_COMMAND MAIL MAILPATH MAILCHECK;PS1= PS2=;exec " + streamFD + ">&1 >/dev/null 2>&1\n"
}

// commandLine has the shell evaluate a command, to which $? is the status of the one before. A quoted string ends where it
// should, whatever is in it; so an open quote or here-document in the command is the command's error. The redirections are
// those of eval as a whole, and end with it.
func commandLine(token string, number, status int, command string) string {
	if strings.HasSuffix(command, `\`) {
		command += "\n" // what goes on in a line that is not there ends some shells
	}
	before := ""
	if status != 0 {
		before = fmt.Sprintf("(exit %d);", status)
	}
	return fmt.Sprintf(`\command printf \\036%%s:%%s:b\\037 %s %d >&%s;%s\eval '%s'</dev/null >&%s 2>&1 %s>&-`+"\n",
		token, number, streamFD, before, strings.ReplaceAll(command+"\n", `'`, `'\''`), streamFD, streamFD)
}

// endLine has the shell say how a command ended. It is a line of its own, because an interrupt or an error discards the
// line that is being executed; and it is sent when the command has begun, because some shells also discard what they have
// read ahead.
func endLine(token string, number int) string {
	return fmt.Sprintf(`\command printf \\036%%s:%%s:%%s:%%s\\037 %s %d "$?" "$PWD" >&%s;set +e`+"\n", token, number, streamFD)
}

// againLine is an endLine for a shell that may have been interrupted while it read the one before, of which it then takes
// any end for a line. That may have an open quote, which is closed; else it is in a comment.
func againLine(token string, number int) string {
	return "\n#\"\n" + endLine(token, number)
}
