// Package form asks the user something in place: fields of text, yes or no, one of several, or some
// of several, and then what to do with them.
//
// A key that the user typed for something else must not answer. So a letter only marks a choice,
// and Enter confirms it. A form without fields begins with no mark.
package form

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
)

// Form is a question. Its texts must be fit to be shown: the caller reveals hidden characters.
type Form struct {
	Title  string
	Body   string // styled text; only its styles and line breaks are shown
	Fields []Field
	// Actions end the form. Enter in the last field marks the first one.
	Actions []Action
	// Leave is the word of Esc, in the hint and in the result.
	Leave Action
	// IsQuick makes Enter in the last field end the form with the first action.
	IsQuick bool

	focus  int // of Fields, then the actions; -1 before the first key
	scroll int // first line of Body
	hidden int // lines of Body that did not fit the last time
	page   int // lines of Body that did fit
}

// Action ends a form.
type Action struct {
	Key   string // marks the action; a letter
	Word  string // identifies it in the result
	About string
	Skips bool // the fields need not be valid
}

// Kind is the kind of a field.
type Kind int

// The kinds of fields.
const (
	Text Kind = iota
	OneOf
	SomeOf
)

// Field is one value of a form.
type Field struct {
	Label, About string
	Kind         Kind
	Choices      []string     // of OneOf and SomeOf
	Chosen       map[int]bool // chosen Choices
	Value        string       // of Text
	Check        func() error // returns why the value does not do; nil means that every value does

	cursor  int // in Choices, or behind the runes of Value
	problem string
	touched bool
}

// Result is how a form ended.
type Result struct{ Word string }

// Start prepares the form for the first key.
func (f *Form) Start() {
	f.focus = 0
	if len(f.Fields) == 0 {
		f.focus = -1
	}
	for i := range f.Fields {
		if f.Fields[i].Chosen == nil {
			f.Fields[i].Chosen = map[int]bool{}
		}
		f.Fields[i].cursor = len([]rune(f.Fields[i].Value))
		if f.Fields[i].Kind != Text {
			f.Fields[i].cursor = 0
		}
	}
}

// field returns the focused field, or nil if an action has the focus.
func (f *Form) field() *Field {
	if f.focus >= 0 && f.focus < len(f.Fields) {
		return &f.Fields[f.focus]
	}
	return nil
}

// Press handles a key, and returns the result if the form has ended.
func (f *Form) Press(press tea.KeyPressMsg) *Result {
	switch press.String() {
	case "esc":
		return &Result{f.Leave.Word}
	case "pgdown":
		f.turnPage()
		return nil
	case "pgup":
		f.scroll = max(f.scroll-f.page, 0)
		return nil
	case "tab":
		f.move(1)
		return nil
	case "shift+tab":
		f.move(-1)
		return nil
	case "enter":
		return f.pressEnter()
	}
	if field := f.field(); field != nil {
		if !field.press(press) {
			f.moveByArrow(press.String())
		}
		return nil
	}
	if f.moveByArrow(press.String()) {
		return nil
	}
	for i, action := range f.Actions {
		if press.Text == action.Key {
			f.focus = len(f.Fields) + i
			return nil
		}
	}
	if press.Text != "" && len(f.Fields) == 0 {
		f.focus = -1 // the user seems to type something else
	}
	return nil
}

// turnPage shows the next lines of the body, and reports whether there were some. The user cannot
// confirm a text before its end was on the screen.
func (f *Form) turnPage() bool {
	by := min(f.hidden-f.scroll, f.page)
	f.scroll += max(by, 0)
	return by > 0
}

func (f *Form) moveByArrow(name string) bool {
	switch name {
	case "down", "right":
		f.move(1)
	case "up", "left":
		f.move(-1)
	default:
		return false
	}
	return true
}

// move moves the focus, and checks the field that it leaves.
func (f *Form) move(by int) {
	if field := f.field(); field != nil {
		field.validateField()
	}
	last := len(f.Fields) + len(f.Actions) - 1
	f.focus = max(min(f.focus+by, last), 0)
}

func (f *Form) pressEnter() *Result {
	if f.focus < 0 {
		return nil
	}
	if f.field() != nil {
		f.move(1)
		if !f.IsQuick || f.field() != nil {
			return nil
		}
	}
	if f.turnPage() {
		return nil
	}
	action := f.Actions[f.focus-len(f.Fields)]
	if action.Skips {
		return &Result{action.Word}
	}
	for i := range f.Fields {
		if !f.Fields[i].validateField() {
			f.focus = i
			return nil
		}
	}
	return &Result{action.Word}
}

// Paste inserts text into the focused field.
func (f *Form) Paste(text string) {
	if field := f.field(); field != nil && field.Kind == Text {
		field.insert(theme.Clean(text))
	}
}

// validateField validates the field and keeps the problem.
func (f *Field) validateField() bool {
	f.problem = ""
	if f.Check != nil {
		if err := f.Check(); err != nil {
			f.problem = theme.Clean(err.Error())
		}
	}
	return f.problem == ""
}

// press handles a key in the field, and reports whether it had a use for it.
func (f *Field) press(press tea.KeyPressMsg) bool {
	if f.Kind == Text {
		return f.pressInText(press)
	}
	switch name := press.String(); name {
	case "down", "right":
		if f.cursor == len(f.Choices)-1 {
			return false
		}
		f.cursor++
	case "up", "left":
		if f.cursor == 0 {
			return false
		}
		f.cursor--
	case "space":
		f.toggle()
		return true
	default:
		return f.pressLetter(press.Text)
	}
	if f.Kind == OneOf {
		f.choose(f.cursor)
	}
	return true
}

// pressLetter moves to the choice that begins with a letter, or has that number.
func (f *Field) pressLetter(text string) bool {
	for i, choice := range f.Choices {
		isNumber := len(f.Choices) < 10 && text == string(rune('1'+i))
		if text != "" && (isNumber || strings.HasPrefix(strings.ToLower(choice), strings.ToLower(text))) {
			f.cursor = i
			f.toggle()
			return true
		}
	}
	return false
}

// toggle changes whether the marked choice is chosen.
func (f *Field) toggle() {
	if f.Kind == OneOf {
		f.choose(f.cursor)
		return
	}
	f.touched, f.problem = true, ""
	f.Chosen[f.cursor] = !f.Chosen[f.cursor]
}

func (f *Field) choose(i int) {
	f.touched, f.problem = true, ""
	f.Chosen = map[int]bool{i: true}
}

// IsTouched reports whether the user has changed the field.
func (f *Field) IsTouched() bool { return f.touched }

func (f *Field) insert(text string) {
	text = strings.ReplaceAll(text, "\n", " ")
	runes := []rune(f.Value)
	f.Value = string(runes[:f.cursor]) + text + string(runes[f.cursor:])
	f.cursor += len([]rune(text))
	f.touched, f.problem = true, ""
}

func (f *Field) pressInText(press tea.KeyPressMsg) bool {
	runes := []rune(f.Value)
	switch name := press.String(); name {
	case "left", "ctrl+b":
		f.cursor = max(f.cursor-1, 0)
	case "right", "ctrl+f":
		f.cursor = min(f.cursor+1, len(runes))
	case "home", "ctrl+a":
		f.cursor = 0
	case "end", "ctrl+e":
		f.cursor = len(runes)
	case "backspace", "ctrl+h":
		if f.cursor > 0 {
			f.Value = string(runes[:f.cursor-1]) + string(runes[f.cursor:])
			f.cursor--
			f.touched, f.problem = true, ""
		}
	case "delete":
		if f.cursor < len(runes) {
			f.Value, f.touched = string(runes[:f.cursor])+string(runes[f.cursor+1:]), true
		}
	case "ctrl+u":
		f.Value, f.cursor, f.touched = string(runes[f.cursor:]), 0, true
	default:
		if press.Text == "" {
			return false
		}
		f.insert(press.Text)
	}
	return true
}
