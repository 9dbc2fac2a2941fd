package schema

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// everything has all that can be expressed.
type everything struct {
	embeddedBase
	Str   string             `json:"str" minLength:"1"`
	Ptr   *int               `json:"ptr"`
	Keep  *embeddedBase      `json:"keep,omitempty"`
	Dur   time.Duration      `json:"dur"`
	Time  time.Time          `json:"time"`
	Bytes []byte             `json:"bytes"`
	List  []*celsius         `json:"list"`
	Map   map[string][]level `json:"map"`
	Any   any                `json:"any"`
	Raw   json.RawMessage    `json:"raw"`
	Tree  tree1              `json:"tree"`
	Gen   generic[int]       `json:"gen"`
	U8    uint8              `json:"u8,omitempty"`
	Free  free               `json:"free"`
}

// Every LLM API accepts these schemas: objects have properties, the type is never an array, and a
// $ref refers to a type that contains itself.
func TestProviderSafe(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[everything](), reflect.TypeFor[embedding](), reflect.TypeFor[map[string]tree1]()} {
		s, err := cachedSchema(cacheKey{typ: typ})
		if err != nil {
			t.Fatal(err)
		}
		root := newTree(t, string(s.JSON()))
		references, err := newSurvey(root)
		if err != nil {
			t.Fatal(err)
		}
		var walk func(t *testing.T, x *tree)
		walk = func(t *testing.T, x *tree) {
			if kind := x.getMember("type"); kind != nil {
				if kind.kind != '"' {
					t.Errorf("%s: the type is an array", x.raw)
				}
				if kind.text == "object" && x.getMember("properties") == nil {
					t.Errorf("%s: no properties", x.raw)
				}
			}
			if ref := x.getMember("$ref"); ref != nil {
				if target := references.targets[ref]; !strings.Contains(string(target.raw), string(ref.raw)) {
					t.Errorf("%s is not recursive", ref.raw)
				}
			}
			for _, word := range []string{"anyOf", "oneOf", "allOf", "not"} {
				if x.getMember(word) != nil {
					t.Errorf("%s: %s", x.raw, word)
				}
			}
			for _, m := range x.members {
				walk(t, m.value)
			}
			for _, item := range x.items {
				walk(t, item)
			}
		}
		walk(t, root)
	}
}
