package schema

import (
	"bytes"
	"regexp"
)

// node is a compiled subschema. A nil *node accepts every value.
type node struct {
	never  bool
	types  kinds // 0 where any type will do
	enum   *enumRule
	str    *stringRule
	num    *numberRule
	arr    *arrayRule
	obj    *objectRule
	apply  *applyRule
	direct *node  // the target, if the node is only a $ref
	scope  *scope // of its resource, where the way to a reference counts
}

// kinds is a set of JSON types.
type kinds uint8

const (
	isNull kinds = 1 << iota
	isBoolean
	isInteger
	isNumber
	isString
	isArray
	isObject
)

// kindNames is in the order of the bits.
var kindNames = [...]string{"null", "boolean", "integer", "number", "string", "array", "object"}

// kindAt maps the first byte of a value to its type.
var kindAt = [256]kinds{
	'{': isObject, '[': isArray, '"': isString, 't': isBoolean, 'f': isBoolean, 'n': isNull, '-': isNumber,
	'0': isNumber, '1': isNumber, '2': isNumber, '3': isNumber, '4': isNumber,
	'5': isNumber, '6': isNumber, '7': isNumber, '8': isNumber, '9': isNumber,
}

// Counts are -1 if the schema sets no bound.

type stringRule struct {
	minLength, maxLength int
	pattern              *regexp.Regexp
	patternText          string // as the schema has it
}

type numberRule struct {
	minimum, maximum, above, below, multipleOf *number
	notMinimum, notMaximum                     bool // draft 4: the bound itself is out
}

type arrayRule struct {
	minItems, maxItems       int
	unique                   bool
	prefix                   []*node
	items                    *node
	hasItems                 bool
	beyond                   *node // additionalItems, which counts where items are listed
	listed, hasBeyond        bool
	contains                 *node
	hasContains              bool
	takesContained           bool // items that contains accepts count as evaluated
	minContains, maxContains int
}

type objectRule struct {
	minProperties, maxProperties int
	fields                       []field
	byName                       map[string]int // where fields are many
	required                     int            // how many fields are
	patterns                     []patternField
	additional                   *node
	hasAdditional                bool
	names                        *node // propertyNames
	hasNames                     bool
	dependent                    []dependency
	plain                        bool // a field is held to its own node only
}

// field is a name that properties or required mention.
type field struct {
	name     string
	literal  string // the name as it is usually written, with its quotes
	node     *node
	declared bool // in properties; else it is an additional property
	required bool
}

type patternField struct {
	pattern *regexp.Regexp
	node    *node
}

// dependency holds the rules for objects that have a certain property.
type dependency struct {
	name     string
	required []string
	node     *node
}

// applyRule holds the keywords that apply further subschemas to the same value.
type applyRule struct {
	ref               *node
	all, any, one     []*node
	not               *node
	cond, then, other *node
	hasNot, hasCond   bool
	hasAny, hasOne    bool
	dynamic           *dynamicRef
	rest              *restRule
}

// fewFields is how many fields are compared one by one.
const fewFields = 12

// findField is the index of the field of that name, or -1.
func (o *objectRule) findField(name []byte) int {
	if o.byName != nil {
		if i, ok := o.byName[string(name)]; ok {
			return i
		}
		return -1
	}
	for i := range o.fields {
		if o.fields[i].name == string(name) {
			return i
		}
	}
	return -1
}

// enumRule holds the values of enum or the single value of const.
type enumRule struct {
	values   []*tree // as written, for messages
	strings  [][]byte
	byString map[string]struct{} // where strings are many
	numbers  []*number
	literals kinds    // null among them; booleans by the two below
	yes, no  bool     // true, false
	hashes   []uint64 // of arrays and objects
}

func (e *enumRule) hasString(s []byte) bool {
	if e.byString != nil {
		_, ok := e.byString[string(s)]
		return ok
	}
	for _, other := range e.strings {
		if bytes.Equal(other, s) {
			return true
		}
	}
	return false
}
