package screen

import (
	tea "charm.land/bubbletea/v2"
)

// edited is the end of the user's editor.
type edited struct {
	text string
	err  error
}

// openEditor gives the terminal and the draft to the user's editor.
func (m *Model) openEditor() tea.Cmd {
	program, read, err := m.host.OpenEditor(m.composer.Text())
	if err != nil {
		m.endEditor(edited{err: err})
		return nil
	}
	return tea.Exec(terminalProgram{program}, func(err error) tea.Msg {
		text, err := read(err)
		return edited{text, err}
	})
}

// endEditor takes the edited draft. After an error the draft stays as it was.
func (m *Model) endEditor(e edited) {
	if e.err != nil {
		m.addTrouble(e.err.Error())
		return
	}
	m.composer.Replace(e.text)
}
