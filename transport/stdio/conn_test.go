package stdio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// stream is a stream of bytes that gives its input in chunks.
type chunks struct {
	in    io.Reader
	chunk func() int
	end   error // after the input; nil is io.EOF

	mu     sync.Mutex
	out    bytes.Buffer
	closed int
	fail   error
}

func (c *chunks) Read(p []byte) (int, error) {
	n, err := c.in.Read(p[:min(len(p), max(1, c.chunk()))])
	if err == io.EOF && c.end != nil {
		err = c.end
	}
	return n, err
}

func (c *chunks) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return 0, c.fail
	}
	return c.out.Write(p)
}

func (c *chunks) Close() error { c.closed++; return nil }

// lines reads all of a connection: lines in quotes, lost ones as !id, with m and r for method and
// response.
func lines(t testing.TB, c transport.Conn) (got []string) {
	for range 100_000 {
		frame, err := c.Read()
		var lost *transport.FrameError
		switch {
		case errors.As(err, &lost):
			kind := ""
			if lost.Method {
				kind += "m"
			}
			if lost.Response {
				kind += "r"
			}
			if id := lost.ID; !id.IsZero() {
				kind += id.String()
			}
			got = append(got, "!"+kind)
		case err == io.EOF:
			return got
		case err != nil:
			return append(got, "error: "+err.Error())
		default:
			got = append(got, fmt.Sprintf("%q", frame))
		}
	}
	t.Fatal("there is no end to it")
	return got
}

func TestConnRead(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for _, tt := range []struct {
		name, in string
		max      int
		want     string
	}{
		{"nothing", "", 0, ``}, {"empty lines", "\n\r\n \t \n\n", 0, ``}, {"lines", "a\nb\n", 0, `"a" "b"`}, {"Windows", "a\r\nb\r\n", 0, `"a" "b"`}, {"between empty ones", "\n\n a \n\t\n\nb\n", 0, `"a" "b"`},
		{"the last one has no end", "a\nb", 0, `"a" "b"`}, {"the last one has half an end", "a\nb\r", 0, `"a" "b"`}, {"white space at the end", "a\n  ", 0, `"a"`}, {"white space within", "a b\tc\rd\n", 0, `"a b\tc\rd"`},
		{"long ones", long + "\n" + long + "y\nz\n", 0, fmt.Sprintf("%q %q", long, long+"y") + ` "z"`}, {"a long one without end", long, 0, fmt.Sprintf("%q", long)},
		{"the limit", "12345\n12345\r\n12345", 5, `"12345" "12345" "12345"`}, {"over the limit", "123456\n1\n123456\r\n2\n123456", 5, `! "1" ! "2" !`},
		{"the limit of long ones", long + "\n" + long + "y\nz\n", len(long), fmt.Sprintf("%q", long) + ` ! "z"`}, {"far over the limit", long + "\na\n" + long + "\n" + long + "\nb\n", 10, `! "a" ! ! "b"`},
		{"over the limit, and the end", long, 10, `!`}, {"NUL and no UTF-8 pass", "\x00\xff\n", 0, `"\x00\xff"`},
	} {
		for _, chunk := range []int{1, 2, 3, 7, 4096, 1 << 20} {
			if chunk < 4 && len(tt.in) > 100_000 {
				continue
			}
			c := Conn(&chunks{in: strings.NewReader(tt.in), chunk: func() int { return chunk }}, tt.max)
			if got := strings.Join(lines(t, c), " "); got != tt.want {
				t.Errorf("%s, by %d: %.200s\nwant %.200s", tt.name, chunk, got, tt.want)
			}
			if _, err := c.Read(); err != io.EOF {
				t.Errorf("%s: Read at the end: %v", tt.name, err)
			}
		}
	}
}

func TestConnReadFails(t *testing.T) {
	broken := errors.New("broken")
	for in, want := range map[string]string{"": `error: broken`, "a\n": `"a" error: broken`, "a\nhalf": `"a" error: broken`, strings.Repeat("x", 100): `error: broken`} {
		c := Conn(&chunks{in: strings.NewReader(in), chunk: func() int { return 10 }, end: broken}, 50)
		if got := strings.Join(lines(t, c), " "); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// endless is a stream without a line break. It counts the bytes that are read.
type endless struct {
	chunks
	read int
}

func (e *endless) Read(p []byte) (int, error) { e.read += len(p); return len(p), nil }

// A line without an end is not read on: the connection ends with an error that says what to do.
func TestEndlessLine(t *testing.T) {
	for _, limit := range []int{1000, 0} {
		stream := &endless{}
		c := Conn(stream, limit)
		want := "64 MiB arrived without a line break, and a message may have at most " + map[int]string{1000: "1000 bytes", 0: "16 MiB"}[limit]
		for range 2 {
			if _, err := c.Read(); err == nil || errors.Is(err, transport.ErrFrame) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "stderr") {
				t.Errorf("limit %d: got %v, want %q", limit, err, want)
			}
		}
		if stream.read > maxSkipped+1<<20 {
			t.Errorf("limit %d: %d bytes were read", limit, stream.read)
		}
	}
}

// What can be told of a message that was too long.
func TestGuesses(t *testing.T) {
	big := `"` + strings.Repeat("x", 300) + `"`
	for _, tt := range []struct{ in, want string }{
		{`{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":` + big + `}}`, `!m7`},
		{`{"id":"a b","jsonrpc":"2.0","method":"m","params":{"a":` + big + `}}`, `!m"a b"`},
		{` { "jsonrpc" : "2.0" , "id" : -7 , "method" : "m" , "params" : { "a" : ` + big + ` } } `, `!m-7`},
		{`{"jsonrpc":"2.0","method":"m","params":{"a":` + big + `},"id":7}`, `!m7`},
		{`{"method":"m","params":{"a":` + big + `},"jsonrpc":"2.0","id":7}`, `!m7`},
		{`{"method":"m","params":{"a":` + big + `},"id":7,"jsonrpc":"2.0"}`, `!m7`},
		{`{"jsonrpc":"2.0","method":"m","params":{"a":` + big + `}}`, `!m`},
		{`{"jsonrpc":"2.0","id":7,"result":{"a":` + big + `}}`, `!r7`},
		{`{"jsonrpc":"2.0","result":{"a":` + big + `},"id":"7"}`, `!r"7"`},
		{`{"result":{"a":` + big + `},"id":7,"jsonrpc":"2.0"}`, `!r7`},
		{`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":` + big + `}}`, `!r7`},
		// an id inside another member is not taken
		{`{"jsonrpc":"2.0","method":"m","params":{"id":7,"a":` + big + `}}`, `!m`},
		{`{"jsonrpc":"2.0","method":"m","params":{"a":` + big + `,"id":7}}`, `!m`},
		{`{"jsonrpc":"2.0","method":"m","params":{"a":` + big + `,"b":{"c":1},"id":7}}`, `!m`},
		{`{"jsonrpc":"2.0","id":"a\"b","method":"m","params":{"a":` + big + `}}`, `!`},
		{`{"jsonrpc":"2.0","id":null,"method":"m","params":{"a":` + big + `}}`, `!`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"m","params":{"a":` + big + `}}`, `!`},
		{`[{"jsonrpc":"2.0","id":7,"method":"m"},` + big + `]`, `!`},
		{`"id":7,` + big, `!`}, {big, `!`}, {strings.Repeat("[", 1000), `!`},
	} {
		c := Conn(&chunks{in: strings.NewReader(tt.in + "\nnext\n"), chunk: func() int { return 100 }}, 100)
		if got := strings.Join(lines(t, c), " "); got != tt.want+` "next"` {
			t.Errorf("%.80s…: %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestConnWrite(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1}`: "{\"a\":1}\n", "": "\n", "{\n\"a\":\r\n1\r}\n": "{ \"a\":  1 } \n", "\n\n\r\r": "    \n", strings.Repeat("x\n", 50_000): strings.Repeat("x ", 50_000) + "\n",
	} {
		s := &chunks{}
		if err := Conn(s, 0).Write([]byte(in)); err != nil || s.out.String() != want {
			t.Errorf("%.40q is written as %.40q, %v", in, s.out.String(), err)
		}
	}
	broken := errors.New("broken")
	if err := Conn(&chunks{fail: broken}, 0).Write([]byte("a")); !errors.Is(err, broken) || !errors.Is(err, mcp.ErrConnection) {
		t.Errorf("got %v", err)
	}
}

func TestConnClose(t *testing.T) {
	s := &chunks{}
	c := Conn(s, 0)
	if c.Close() != nil || c.Close() != nil || s.closed != 1 {
		t.Errorf("closed %d times", s.closed)
	}
}

// Lines of concurrent writers do not mix.
func TestConnWritersAreApart(t *testing.T) {
	r, w := io.Pipe()
	c := Conn(struct {
		io.Reader
		io.WriteCloser
	}{r, w}, 0)
	const writers, each = 8, 50
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := range each {
				line := fmt.Sprintf(`{"w":%d,"n":%d,"x":"%s"}`, i, n, strings.Repeat("y", 1000*i))
				if err := c.Write([]byte(line)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { wg.Wait(); w.Close() }()
	next := map[string]int{}
	for _, line := range lines(t, c) {
		var i, n int
		if _, err := fmt.Sscanf(strings.ReplaceAll(line, `\"`, `"`), `"{"w":%d,"n":%d,`, &i, &n); err != nil || !strings.HasSuffix(line, `}"`) {
			t.Fatalf("%v: %.80s", err, line)
		}
		if key := fmt.Sprint(i); next[key] != n {
			t.Fatalf("writer %d: line %d, want %d", i, n, next[key])
		} else {
			next[key]++
		}
	}
	if len(next) != writers {
		t.Errorf("%d writers were read", len(next))
	}
}

// FuzzConn: whatever comes in whatever chunks, lines come out as they went in, and what is too long
// is told.
func FuzzConn(f *testing.F) {
	for _, in := range []string{"", "a\nb\n", "a\r\n\r\nb", "\n\n \n", `{"jsonrpc":"2.0","id":7,"method":"m","params":{}}` + "\n", strings.Repeat("x", 300) + "\ny\n", "\r\r\n", strings.Repeat("x", 64) + "\r\n", "\xff\x00\n"} {
		f.Add([]byte(in), uint8(3), uint16(20))
		f.Add([]byte(in), uint8(200), uint16(64))
	}
	f.Fuzz(func(t *testing.T, in []byte, step uint8, limit uint16) {
		n := int(step)
		chunk := func() int { n = (n*31 + 7) % 257; return n % (int(step)%64 + 1) }
		// long lines are what the buffer does not hold: repeat the input there
		if step%8 == 7 {
			in = bytes.Repeat(in, 1+int(limit)%300)
		}
		maxLine := int(limit)%70_000 + 1
		got := lines(t, Conn(&chunks{in: bytes.NewReader(in), chunk: chunk}, maxLine))
		var want []string
		for _, line := range bytes.Split(in, []byte{'\n'}) {
			short := bytes.TrimSuffix(line, []byte{'\r'})
			switch {
			case len(short) > maxLine:
				want = append(want, "!")
			case len(bytes.TrimSpace(line)) > 0:
				want = append(want, fmt.Sprintf("%q", bytes.TrimSpace(line)))
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d lines, want %d: %.300q\nwant %.300q", len(got), len(want), got, want)
		}
		for i := range got {
			if got[i] != want[i] && !(want[i] == "!" && got[i][0] == '!') {
				t.Fatalf("line %d is %.300s, want %.300s", i, got[i], want[i])
			}
		}
	})
}
