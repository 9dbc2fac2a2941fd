package oauth

import (
	"net/http"
	"slices"
	"strings"
)

// Challenge is one challenge of a WWW-Authenticate field (RFC 9110, section 11.6.1).
type Challenge struct {
	Scheme string  // as written; compare it with [Challenge.Is]
	Params []Param // in their order
}

// Param is a parameter of a challenge. A name is compared without regard to case.
type Param struct{ Name, Value string }

// Is reports whether the challenge has a scheme, in any case.
func (c Challenge) Is(scheme string) bool { return strings.EqualFold(c.Scheme, scheme) }

// Get returns the value of a parameter, or "".
func (c Challenge) Get(name string) string {
	for _, p := range c.Params {
		if strings.EqualFold(p.Name, name) {
			return p.Value
		}
	}
	return ""
}

// String formats the challenge for a WWW-Authenticate field. Values are quoted; control characters
// become spaces.
func (c Challenge) String() string {
	var b strings.Builder
	b.WriteString(c.Scheme)
	for i, p := range c.Params {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(" " + p.Name + `="`)
		for _, r := range p.Value {
			switch {
			case r == '"' || r == '\\':
				b.WriteByte('\\')
			case r < ' ' || r == 0x7f:
				r = ' '
			}
			b.WriteRune(r)
		}
		b.WriteByte('"')
	}
	return b.String()
}

// maxChallenges bounds how many challenges of one answer are read.
const maxChallenges = 32

// ParseChallenges returns the challenges of all WWW-Authenticate fields of an answer. It skips text
// that it cannot read, because servers write many forms.
func ParseChallenges(h http.Header) []Challenge {
	var all []Challenge
	for _, field := range h.Values("Www-Authenticate") {
		s := challengeScanner{text: field}
		for len(all) < maxChallenges {
			c, ok := s.nextChallenge()
			if !ok {
				break
			}
			all = append(all, c)
		}
	}
	return all
}

// FindChallenge returns the first challenge of one of the schemes that has the parameter, else the
// first one of the schemes. ok is false without one.
func FindChallenge(all []Challenge, param string, schemes ...string) (c Challenge, ok bool) {
	for _, candidate := range all {
		if !slices.ContainsFunc(schemes, candidate.Is) {
			continue
		}
		if candidate.Get(param) != "" {
			return candidate, true
		}
		if !ok {
			c, ok = candidate, true
		}
	}
	return c, ok
}

// challengeScanner reads a list of challenges. A comma separates challenges as well as parameters:
// a word followed by "=" is a parameter, any other word begins a challenge.
type challengeScanner struct {
	text   string
	scheme string // read ahead: the scheme of the next challenge
}

func (s *challengeScanner) nextChallenge() (c Challenge, ok bool) {
	if s.scheme == "" && !s.findScheme() {
		return c, false
	}
	c.Scheme, s.scheme = s.scheme, ""
	for {
		s.skip(" \t,")
		if s.text == "" {
			return c, true
		}
		name := s.token()
		if name == "" {
			s.text = s.text[1:]
			continue
		}
		s.skipPadding()
		rest := strings.TrimLeft(s.text, " \t")
		if !strings.HasPrefix(rest, "=") {
			s.scheme = name
			return c, true
		}
		s.text = strings.TrimLeft(rest[1:], " \t")
		c.Params = append(c.Params, Param{name, s.value()})
	}
}

// skipPadding skips the "=" at the end of base64 credentials, as in a challenge of Negotiate. They
// are not a parameter.
func (s *challengeScanner) skipPadding() {
	trimmed := strings.TrimLeft(s.text, "=")
	if trimmed != s.text && (trimmed == "" || trimmed[0] == ',') {
		s.text = trimmed
	}
}

func (s *challengeScanner) findScheme() bool {
	for s.text != "" {
		s.skip(" \t,")
		if s.scheme = s.token(); s.scheme != "" {
			return true
		}
		if s.text != "" {
			s.text = s.text[1:]
		}
	}
	return false
}

func (s *challengeScanner) skip(set string) { s.text = strings.TrimLeft(s.text, set) }

// token reads a token (RFC 9110, section 5.6.2) or the characters of base64 credentials.
func (s *challengeScanner) token() string {
	end := strings.IndexFunc(s.text, func(r rune) bool {
		return r > 0x7e || r <= ' ' || strings.ContainsRune(`"(),:;<=>?@[\]{}`, r)
	})
	if end < 0 {
		end = len(s.text)
	}
	t := s.text[:end]
	s.text = s.text[end:]
	return t
}

// value reads a quoted string, or everything up to a comma or a space.
func (s *challengeScanner) value() string {
	if !strings.HasPrefix(s.text, `"`) {
		end := strings.IndexAny(s.text, ", \t")
		if end < 0 {
			end = len(s.text)
		}
		v := s.text[:end]
		s.text = s.text[end:]
		return v
	}
	var b strings.Builder
	for i := 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.text = s.text[i+1:]
			return b.String()
		case c == '\\' && i+1 < len(s.text):
			i++
			b.WriteByte(s.text[i])
		default:
			b.WriteByte(c)
		}
	}
	s.text = "" // the closing quote is missing
	return b.String()
}
