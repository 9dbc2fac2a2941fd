package skills

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/mcp"
)

// Limits of a skill. Every host must accept skills within them.
const (
	MaxFiles = 512      // files, SKILL.md included
	MaxSize  = 16 << 20 // bytes of all files together
)

// fileName is the file that makes a folder a skill.
const fileName = "SKILL.md"

// Skill is the entry of a skill: its frontmatter, and all of its files with their digests. The URI
// identifies it at its server; names need not be unique.
type Skill struct {
	// URI is the URI of SKILL.md.
	URI string
	// Frontmatter is the YAML at the beginning of SKILL.md as a JSON object.
	Frontmatter json.RawMessage
	// Files are all files of the skill, SKILL.md included. They are empty if Dynamic is set.
	Files []File
	// Dynamic reports that the server generates the files, so that there are no digests.
	Dynamic bool
	Meta    mcp.Meta

	malformed string // why Files could not be decoded
}

// File is a file of a skill.
type File struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"` // of the bytes: sha256: and 64 lower-case hexadecimal digits
	Size   int64  `json:"size"`   // bytes
}

// wireSkill is a skill in messages.
type wireSkill struct {
	URI         string          `json:"uri"`
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   json.RawMessage `json:"resources,omitempty"`
	Meta        mcp.Meta        `json:"_meta,omitempty"`
}

const dynamic = `"dynamic"`

// MarshalJSON implements [json.Marshaler].
func (s Skill) MarshalJSON() ([]byte, error) {
	w := wireSkill{URI: s.URI, Frontmatter: s.Frontmatter, Resources: json.RawMessage(dynamic), Meta: s.Meta}
	if !s.Dynamic {
		files := s.Files
		if files == nil {
			files = []File{}
		}
		raw, err := mcp.Encode(files)
		if err != nil {
			return nil, err
		}
		w.Resources = raw
	}
	return mcp.Encode(&w)
}

// UnmarshalJSON implements [json.Unmarshaler]. It accepts entries that [Skill.Check] refuses, so
// that one of them does not hide the others of a list.
func (s *Skill) UnmarshalJSON(raw []byte) error {
	var w wireSkill
	if err := mcp.Decode(raw, &w); err != nil {
		return err
	}
	*s = Skill{URI: w.URI, Frontmatter: w.Frontmatter, Meta: w.Meta}
	var files []struct {
		URI    string `json:"uri"`
		Digest string `json:"digest"`
		Size   *int64 `json:"size"`
	}
	switch {
	case string(w.Resources) == dynamic:
		s.Dynamic = true
		return nil
	case len(w.Resources) == 0 || w.Resources[0] != '[':
		s.malformed = `its resources are neither a list nor "dynamic"`
		return nil
	}
	if err := mcp.Decode(w.Resources, &files); err != nil {
		s.malformed = "its resources cannot be decoded: " + err.Error()
		return nil
	}
	for _, f := range files {
		size := int64(-1)
		if f.Size != nil {
			size = *f.Size
		}
		s.Files = append(s.Files, File{f.URI, f.Digest, size})
	}
	return nil
}

// Name returns the name in the frontmatter, or "" without one.
func (s *Skill) Name() string { return s.text("name") }

// Description returns the description in the frontmatter, or "" without one.
func (s *Skill) Description() string { return s.text("description") }

func (s *Skill) text(field string) string {
	var all map[string]json.RawMessage
	var text string
	if json.Unmarshal(s.Frontmatter, &all) != nil || json.Unmarshal(all[field], &text) != nil {
		return ""
	}
	return text
}

// root returns the URI of the skill's folder, without a slash at the end, or "" if the skill's URI
// has no folder.
func (s *Skill) root() string {
	root, ok := strings.CutSuffix(s.URI, "/"+fileName)
	if !ok {
		return ""
	}
	return root
}

// file returns the file of a URI, or nil.
func (s *Skill) file(uri string) *File {
	for i := range s.Files {
		if s.Files[i].URI == uri {
			return &s.Files[i]
		}
	}
	return nil
}

var (
	nameRule   = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)
	digestRule = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)
)

func isName(name string) bool { return nameRule().MatchString(name) && !strings.Contains(name, "--") }

// Check returns an error if the entry breaks a rule of the extension, or a limit. Such a skill
// cannot be read. The error is a [*VerificationError].
func (s *Skill) Check() error {
	if err := s.checkEntry(); err != nil {
		return &VerificationError{s.URI, err.Error()}
	}
	return nil
}

func (s *Skill) checkEntry() error {
	name, root := s.Name(), s.root()
	switch {
	case s.malformed != "":
		return errors.New(s.malformed)
	case root == "":
		return errors.New("its URI does not end with /" + fileName)
	case !isName(name):
		return fmt.Errorf("the name %.80q is not 1 to 64 lower-case letters, digits and single hyphens", name)
	case root[strings.LastIndexByte(root, '/')+1:] != name:
		return fmt.Errorf("its folder is not named %s, as its frontmatter is", name)
	case s.Description() == "":
		return errors.New("its frontmatter has no description")
	case s.Dynamic:
		return nil
	}
	return s.checkFiles(root + "/")
}

func (s *Skill) checkFiles(folder string) error {
	if len(s.Files) > MaxFiles {
		return fmt.Errorf("it has %d files, and a skill may have %d", len(s.Files), MaxFiles)
	}
	seen, total := map[string]bool{}, int64(0)
	for _, f := range s.Files {
		switch {
		case !strings.HasPrefix(f.URI, folder) || len(f.URI) == len(folder):
			return fmt.Errorf("its file %q is not in its folder", f.URI)
		case seen[f.URI]:
			return fmt.Errorf("it lists %s twice", f.URI)
		case !digestRule().MatchString(f.Digest):
			return fmt.Errorf("the digest of %s is not sha256: and 64 lower-case hexadecimal digits", f.URI)
		case f.Size < 0:
			return fmt.Errorf("%s has no size", f.URI)
		case f.Size > MaxSize-total:
			return fmt.Errorf("its files have more than %d MiB together", MaxSize>>20)
		}
		seen[f.URI] = true
		total += f.Size
	}
	if !seen[s.URI] {
		return errors.New("it does not list its own " + fileName)
	}
	return nil
}

// VerificationError reports that a skill's entry is invalid, or that a file differs from the
// entry's description of it. The file must not be used. If the skill may have changed since the
// entry was sent, [Get] returns the new one.
type VerificationError struct {
	URI    string // of the skill or file
	Reason string
}

// ErrUnverified matches each [VerificationError].
var ErrUnverified = errors.New("the file is not the one in the entry of its skill")

// Is implements the interface that [errors.Is] looks for.
func (*VerificationError) Is(target error) bool { return target == ErrUnverified }

func (e *VerificationError) Error() string {
	return fmt.Sprintf("the skill file %s is refused: %s", e.URI, e.Reason)
}
