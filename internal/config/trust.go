package config

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// TrustFacts are everything that decides what a project's server can do. A user who trusts the
// server agrees to them.
type TrustFacts struct {
	facts   []fact
	missing []string // files that would be facts if they existed
}

// fact is a line that the user sees, and the values behind it. Two facts are the same if both
// agree.
type fact struct {
	line string // shows no secret; safe to print on a terminal
	// exact is the text in the file, with unexpanded variables, or the hash of a file's content. It
	// may hold secrets.
	exact string
	// path is the absolute path of the file if the fact is its content.
	path string
}

// Agreement is the trust of a user in a project's server, as the state file keeps it.
type Agreement struct {
	// Facts are the lines that the user has seen.
	Facts []string `json:"facts"`
	// Digests holds a keyed hash of the value behind each line. An agreement of an older dowel has
	// no digests; its Hash covers the facts.
	Digests map[string]string `json:"digests,omitzero"`
	Hash    string            `json:"hash,omitzero"`
	// Folder means that files of the project's folder may change.
	Folder bool `json:"folder,omitzero"`
}

// TrustFacts returns the facts of a server: the kind, the command with its arguments, the folder,
// the variables and header fields, the URL, the headers helper, the login URLs, whether changed
// definitions are only noted, and the content of
// the files that [Server.codeFiles] finds. Variables in v only serve to find these files.
func (s *Server) TrustFacts(v Variables) TrustFacts {
	kind := s.Kind
	if kind == "" {
		kind = "unclear"
	}
	t := TrustFacts{facts: []fact{{line: "kind " + string(kind)}}}
	shown := s.Masked()
	t.addWord("command", shown.Command, s.Command)
	if len(s.Args) > 0 {
		t.addFact("args "+strings.Join(QuoteWords(shown.Args), " "), joinExact(s.Args))
	}
	t.addWord("cwd", shown.Dir, s.Dir)
	t.addWord("envFile", shown.EnvFile, s.EnvFile)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		t.addFact("env "+QuoteWord(name)+s.describeOrigin(s.Env[name])+describePower(name), s.Env[name])
	}
	for _, name := range slices.Sorted(slices.Values(s.PassEnv)) {
		t.addFact("env "+QuoteWord(name)+" handed on", "")
	}
	t.addWord("url", shown.URL, s.URL)
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		t.addFact("header "+QuoteWord(name)+s.describeOrigin(s.Headers[name]), s.Headers[name])
	}
	t.addWord("headersHelper", shown.HeadersHelper, s.HeadersHelper)
	if s.Definitions == NoteChanges { // a project's servers hold them by default
		t.addWord("definitions", s.Definitions, s.Definitions)
	}
	if s.KeepDetached {
		t.addFact("keepDetached: its daemons go on when it ends", "true")
	}
	if o := s.OAuth; o != nil {
		s.addLoginFacts(&t, shown.OAuth)
	}
	files, missing := s.codeFiles(v)
	t.facts, t.missing = append(t.facts, files...), missing
	return t
}

// addLoginFacts adds where the user logs in, and which secrets of the user go there.
func (s *Server) addLoginFacts(t *TrustFacts, shown *OAuth) {
	o := s.OAuth
	t.addWord("login issuer", o.Issuer, o.Issuer)
	t.addWord("login metadata", o.MetadataURL, o.MetadataURL)
	t.addWord("login authorization", o.AuthorizationURL, o.AuthorizationURL)
	t.addWord("login token", o.TokenURL, o.TokenURL)
	t.addWord("login redirect", o.RedirectURI, o.RedirectURI)
	t.addWord("login resource", o.Resource, o.Resource)
	t.addWord("login key", o.PrivateKey, o.PrivateKey)
	if o.ClientSecret != "" {
		t.addFact("login secret"+s.describeOrigin(o.ClientSecret), o.ClientSecret)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Params)) {
		t.addFact("login parameter "+QuoteWord(name)+s.describeOrigin(o.Params[name]), o.Params[name])
	}
	if o.Grant != "" {
		t.addWord("login grant", shown.Grant, o.Grant)
	}
}

func (t *TrustFacts) addFact(line, exact string) {
	t.facts = append(t.facts, fact{line: line, exact: exact})
}

// addWord adds a fact that shows one string. An empty string adds none.
func (t *TrustFacts) addWord(what, shown, exact string) {
	if exact != "" {
		t.addFact(what+" "+QuoteWord(shown), exact)
	}
}

// joinExact returns a text that differs for different lists of strings.
func joinExact(texts []string) string {
	text, _ := json.Marshal(texts) // strings can always be marshaled
	return string(text)
}

// Lines returns the facts, one a line. They hold no values of variables and header fields.
func (t TrustFacts) Lines() []string {
	lines := make([]string, len(t.facts))
	for i, f := range t.facts {
		lines[i] = f.line
	}
	return lines
}

// HasFiles reports whether the content of a file is among the facts.
func (t TrustFacts) HasFiles() bool {
	return slices.ContainsFunc(t.facts, func(f fact) bool { return f.path != "" })
}

// Files returns the absolute paths of files with content that is a fact, and of files that would be
// a fact if they existed.
func (t TrustFacts) Files() []string {
	paths := slices.Clone(t.missing)
	for _, f := range t.facts {
		if f.path != "" {
			paths = append(paths, f.path)
		}
	}
	return paths
}

// Agree returns the agreement of a user to the facts. If folder is true, the agreement does not
// cover the content of files, so they may change.
func (t TrustFacts) Agree(key []byte, folder bool) Agreement {
	a := Agreement{Facts: []string{}, Digests: map[string]string{}, Folder: folder}
	for _, f := range t.facts {
		if folder && f.path != "" {
			continue
		}
		a.Facts = append(a.Facts, f.line)
		a.Digests[f.line] = f.digest(key)
	}
	return a
}

// Lines returns the facts that the user has seen, without values of variables.
func (a Agreement) Lines() []string {
	lines := slices.Clone(a.Facts)
	if a.Digests == nil {
		for i, line := range lines {
			lines[i] = cutLegacyValue(line)
		}
	}
	return lines
}

// digest returns the keyed hash of a fact.
func (f fact) digest(key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(f.line + "\x00" + f.exact))
	return hex.EncodeToString(mac.Sum(nil))
}

// ChangesSince returns the difference to earlier facts, one change a line, or nil without a
// difference.
func (t TrustFacts) ChangesSince(earlier TrustFacts) []string {
	key := []byte("compares two facts of this process")
	return t.Changes(earlier.Agree(key, false), key)
}

// Changes returns the differences to what the user agreed to, one a line, or nil if the agreement
// covers the facts: "- " and a fact that does not hold any more, "+ " and a new one, "~ " and a
// fact with another value or content. A file that does not exist any more counts as unchanged. key
// is the key of the agreement, which must have Digests; see [Server.LegacyChanges] for others.
func (t TrustFacts) Changes(a Agreement, key []byte) (changes []string) {
	var now []string
	for _, f := range t.facts {
		if a.Folder && f.path != "" {
			continue
		}
		now = append(now, f.line)
		digest, agreed := a.Digests[f.line]
		switch {
		case !agreed:
			changes = append(changes, "+ "+f.line)
		case !hmac.Equal([]byte(digest), []byte(f.digest(key))):
			changes = append(changes, "~ "+f.line+" "+f.describeChange())
		}
	}
	var gone []string
	for _, line := range a.Facts {
		if !slices.Contains(now, line) && !strings.HasPrefix(line, fileFact) {
			gone = append(gone, "- "+line)
		}
	}
	return append(gone, changes...)
}

// describeChange describes a change behind a line that is the same as before.
func (f fact) describeChange() string {
	switch {
	case f.path != "":
		return "has other content"
	case strings.HasPrefix(f.line, "env "), strings.HasPrefix(f.line, "header "):
		return "has another value"
	}
	return "has changed in the hidden part"
}

// describeOrigin names the variables from which a value is taken.
func (s *Server) describeOrigin(value string) string {
	var names []string
	x := expansion{bare: s.findDialect().bareVariables, v: Variables{GOOS: "windows"}} // where all forms count
	x.v.Env = func(name string) (string, bool) { names = append(names, name); return "", false }
	x.v.Input = func(in Input) (string, bool) { names = append(names, "input:"+in.ID); return "", true }
	x.v.ReadFile = func(path string) ([]byte, error) { names = append(names, "file:"+path); return nil, nil }
	x.expandText(value)
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return " from " + strings.Join(QuoteWords(slices.Compact(names)), ", ")
}

// describePower warns of an environment variable that can make a harmless command run other code.
func describePower(name string) string {
	if runsCode(name) {
		return " (can make programs run other code)"
	}
	return ""
}

// runsCode reports whether an environment variable can make a harmless command run other code.
func runsCode(name string) bool {
	name = strings.ToUpper(name)
	if strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "NPM_CONFIG_") ||
		strings.HasPrefix(name, "UV_") || strings.HasPrefix(name, "PIP_") || strings.HasPrefix(name, "DOCKER_") {
		return true
	}
	return slices.Contains(codeVariables, name) || slices.Contains(legacyCodeVariables, name)
}

// codeVariables and legacyCodeVariables can make programs run other code. The values of the latter
// are part of the facts of older versions.
var (
	codeVariables       = []string{"PYTHONUSERBASE", "PYTHONPLATLIBDIR", "PYTHONEXECUTABLE", "PYTHONINSPECT", "PYTHONBREAKPOINT", "GCONV_PATH", "ZDOTDIR", "BUNDLE_GEMFILE", "GEM_HOME", "GEM_PATH", "NODE_EXTRA_CA_CERTS", "OPENSSL_CONF", "PHPRC", "PHP_INI_SCAN_DIR", "XDG_CONFIG_HOME"}
	legacyCodeVariables = []string{"PATH", "NODE_OPTIONS", "NODE_PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "BASH_ENV", "ENV", "SHELL",
		"PERL5OPT", "PERL5LIB", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "PROMPT_COMMAND",
		"EDITOR", "PAGER", "BROWSER", "DENO_DIR", "BUN_OPTIONS", "DOTNET_STARTUP_HOOKS", "HOME", "USERPROFILE", "COMSPEC", "PATHEXT"}
)

// QuoteWord quotes a string so that it is a single word of a line.
func QuoteWord(text string) string {
	plain := text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune("\"'`\\,", r)
	})
	if plain {
		return text
	}
	return strconv.QuoteToGraphic(text)
}

// QuoteWords quotes each string.
func QuoteWords(texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = QuoteWord(text)
	}
	return all
}
