package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// library checks the schemas that the own checker does not know, by means of
// github.com/santhosh-tekuri/jsonschema.
//
// The library knows no bound on its work. So the schema that it is given has a
// format in each subschema, which it checks before it goes on to the
// subschema's applicators: there a meter counts, and ends the validation by a
// panic. A meter belongs to one validation at a time, hence the free list.
type library struct {
	survey *survey
	doc    any

	mu   sync.Mutex
	free []*metered
}

// metered is the library's form of a schema, with its meter.
type metered struct {
	schema *jsonschema.Schema
	meter  meter
}

type meter struct{ steps int }

// spend panics with errMeter when nothing is left.
func (m *meter) spend(n int) {
	if m.steps -= n; m.steps < 0 {
		panic(errMeter)
	}
}

var errMeter = fmt.Errorf("schema: %w", ErrTooComplex)

// maxLibrarySubschemas is lower than MaxSubschemas, because the library's time
// to compile grows with the square.
const maxLibrarySubschemas = 2048

var drafts = map[dialect]*jsonschema.Draft{
	draft4: jsonschema.Draft4, draft6: jsonschema.Draft6, draft7: jsonschema.Draft7,
	draft2019: jsonschema.Draft2019, draft2020: jsonschema.Draft2020,
}

// location is the base of relative references.
const location = "schema:///root"

func newLibrary(v *survey) (*library, error) {
	if len(v.order) > maxLibrarySubschemas {
		return nil, fmt.Errorf("%w: more than %d subschemas, with keywords that are rarely used", ErrUnsupported, maxLibrarySubschemas)
	}
	if err := v.patterns(); err != nil {
		return nil, err
	}
	doc, err := weigher{v}.document(v.root)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrUnsupported, err)
	}
	l := &library{survey: v, doc: doc}
	m, err := l.compile()
	if err != nil {
		return nil, err
	}
	l.free = append(l.free, m)
	return l, nil
}

// patterns refuses those that Go cannot run, whose errors the library would
// wrap in its own.
func (v *survey) patterns() error {
	for _, t := range v.order {
		var all []string
		if p := t.get("pattern"); p != nil && p.kind == '"' {
			all = append(all, p.text)
		}
		if named := t.get("patternProperties"); named != nil {
			for _, m := range named.members {
				all = append(all, m.name)
			}
		}
		for _, p := range all {
			if _, err := compilePattern(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// outside refuses to load what is not in the document.
type outside struct{}

func (outside) Load(url string) (any, error) {
	return nil, outsideError(strings.TrimPrefix(url, "schema:///"))
}

func (l *library) compile() (m *metered, err error) {
	defer recovered(&err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(drafts[l.survey.dialect])
	c.UseLoader(outside{})
	c.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		re, err := compilePattern(pattern)
		if err != nil {
			return nil, err // not a Regexp that holds a nil pointer
		}
		return re, nil
	})
	c.AssertFormat()
	m = new(metered)
	for i, t := range l.survey.order {
		cost := weigher{l.survey}.cost(t)
		c.RegisterFormat(&jsonschema.Format{Name: formatName(i), Validate: func(v any) error {
			m.meter.spend(cost.of(v))
			return nil
		}})
	}
	if err := c.AddResource(location, l.doc); err != nil {
		return nil, err
	}
	m.schema, err = c.Compile(location)
	return m, libraryError(err)
}

// libraryError cuts the document's made-up address out of messages, and finds
// the own errors, which not all of the library's wrap.
func libraryError(err error) error {
	var load *jsonschema.LoadURLError
	var pattern *jsonschema.InvalidRegexError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &load):
		return load.Err
	case errors.As(err, &pattern):
		return pattern.Err
	}
	return errors.New(strings.ReplaceAll(err.Error(), location, ""))
}

// recovered makes errors of panics: the meter's, and faults in the library,
// which works on what strangers have written.
func recovered(err *error) {
	switch p := recover(); p {
	case nil:
	case error(errMeter):
		*err = ErrTooComplex
	default:
		*err = fmt.Errorf("schema: internal error: %v", p)
	}
}

func (l *library) take() (*metered, error) {
	l.mu.Lock()
	if n := len(l.free); n > 0 {
		m := l.free[n-1]
		l.free = l.free[:n-1]
		l.mu.Unlock()
		return m, nil
	}
	l.mu.Unlock()
	return l.compile()
}

func (l *library) put(m *metered) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) < runtime.GOMAXPROCS(0) {
		l.free = append(l.free, m)
	}
}

func (l *library) validate(data []byte, steps int) (err error) {
	t, err := parse(data)
	if err != nil {
		return err
	}
	value, err := t.plain()
	if err != nil {
		return &ValidationError{Issues: []Issue{{Message: err.Error()}}}
	}
	m, err := l.take()
	if err != nil {
		return err
	}
	defer l.put(m)
	defer recovered(&err)
	m.meter.steps = steps
	return libraryIssues(m.schema.Validate(value))
}

// plain is the value in the library's form. Numbers that math/big would take
// long over are refused.
func (t *tree) plain() (any, error) {
	switch t.kind {
	case '{':
		object := make(map[string]any, len(t.members))
		for _, m := range t.members {
			var err error
			if object[m.name], err = m.value.plain(); err != nil {
				return nil, err
			}
		}
		return object, nil
	case '[':
		array := make([]any, len(t.items))
		for i, item := range t.items {
			var err error
			if array[i], err = item.plain(); err != nil {
				return nil, err
			}
		}
		return array, nil
	case '"':
		return t.text, nil
	case 'n':
		return nil, nil
	case 't', 'f':
		return t.kind == 't', nil
	}
	if p := parseDecimal(t.raw).point; len(t.raw) > maxExponent || p > maxExponent || p < -maxExponent {
		return nil, fmt.Errorf("the number %s has too many digits", shown(t.raw))
	}
	return json.Number(t.raw), nil
}

// libraryIssues puts the library's errors into this package's form.
func libraryIssues(err error) error {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	x := new(explanation)
	for _, leaf := range leaves(invalid) {
		x.path = leaf.InstanceLocation
		x.add(faultOther, "%s", leafMessage(leaf))
	}
	return &ValidationError{Issues: x.issues, More: x.more}
}

func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		return []*jsonschema.ValidationError{e}
	}
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		all = append(all, leaves(cause)...)
	}
	return all
}

func leafMessage(e *jsonschema.ValidationError) string {
	if _, ok := e.ErrorKind.(*kind.FalseSchema); ok {
		return "must not be present"
	}
	if len(e.Causes) == 0 {
		return e.BasicOutput().Error.String()
	}
	var reasons []string
	for _, cause := range e.Causes[:min(len(e.Causes), 5)] {
		first := leaves(cause)[0]
		path := &explanation{path: first.InstanceLocation[len(e.InstanceLocation):]}
		reasons = append(reasons, Issue{Path: path.pointer(), Message: leafMessage(first)}.String())
	}
	return fmt.Sprintf("must match one of %d alternatives: %s", len(e.Causes), strings.Join(reasons, ", or "))
}
