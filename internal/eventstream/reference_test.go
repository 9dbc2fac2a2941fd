package eventstream

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"regexp"
	"strings"
	"time"
)

// reference reads a whole stream in a simple way and returns the expected results of Next as text.
func reference(input string, limit int) (got []string) {
	input = strings.TrimPrefix(input, "\ufeff")
	input = strings.ReplaceAll(strings.ReplaceAll(input, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(input, "\n")
	last := lines[len(lines)-1]
	var e Event
	var data []string
	var large, begun bool
	for _, line := range lines[:len(lines)-1] {
		if line == "" {
			e.Data = []byte(strings.Join(data, "\n"))
			switch {
			case large || len(e.Data) > limit:
				got = append(got, "too large")
			case data != nil || e.HasID || e.Retry > 0:
				got = append(got, text(e))
			}
			e, data, large, begun = Event{}, nil, false, false
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		begun = begun || name != ""
		switch name {
		case "data":
			data = append(data, value)
			continue
		case "id", "event", "retry":
			if large = large || len(value) > maxField; large {
				continue
			}
		}
		switch name {
		case "id":
			if !strings.Contains(value, "\x00") {
				e.ID, e.HasID = value, true
			}
		case "event":
			if e.Name = value; value == "message" {
				e.Name = ""
			}
		case "retry":
			if regexp.MustCompile(`^[0-9]+$`).MatchString(value) {
				e.Retry = referenceRetry(value)
			}
		}
	}
	if begun || last != "" && last[0] != ':' {
		return append(got, io.ErrUnexpectedEOF.Error())
	}
	return append(got, io.EOF.Error())
}

func referenceRetry(digits string) time.Duration {
	n, _ := new(big.Int).SetString(digits, 10)
	most := big.NewInt(math.MaxInt64 / int64(time.Millisecond))
	if n.Cmp(most) > 0 {
		n = most
	}
	return max(time.Duration(n.Int64())*time.Millisecond, 1)
}

func text(e Event) string {
	id := "-"
	if e.HasID {
		id = fmt.Sprintf("%q", e.ID)
	}
	return fmt.Sprintf("%q %s %v %q", e.Name, id, e.Retry, e.Data)
}

// read returns the results of a Reader.
func read(src io.Reader, limit int) (got []string) {
	r := NewReader(src, limit)
	for {
		e, err := r.Next()
		switch {
		case err == nil:
			if cap(e.Data) != len(e.Data) {
				err = errors.New("memory behind the data is given away")
			}
			got = append(got, text(e))
			for i := range e.Data {
				e.Data[i] = 'X' // it is the caller's
			}
		case errors.Is(err, ErrTooLarge):
			got, err = append(got, "too large"), nil
		}
		if err != nil {
			return append(got, err.Error())
		}
	}
}

// chunks gives its input in pieces of n bytes.
type chunks struct {
	in string
	n  int
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.in == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.n)], c.in)
	c.in = c.in[n:]
	return n, nil
}
