package screen

import (
	"path"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

const (
	maxPath    = 4 << 10 // bytes of a pasted path
	maxMention = 2 * time.Second
)

// imageExtensions are the names of image files.
var imageExtensions = map[string]bool{".png": true, ".jpg": true, ".jpeg": true, ".gif": true, ".webp": true}

// IsImageName reports whether a file of this name holds an image that models read.
func IsImageName(name string) bool { return imageExtensions[strings.ToLower(path.Ext(name))] }

// heldInput is what the user types and pastes while the host looks at a pasted path. The zero value
// holds nothing.
type heldInput struct {
	isOn     bool
	messages []tea.Msg
}

// paste gives pasted text to the form, or to the input. There a path of an image attaches the
// image. The host looks at the file, because a disk may be slow. Keys wait until it has answered,
// at most for maxMention.
func (m *Model) paste(text string) tea.Cmd {
	if f := m.form(); f != nil {
		f.Paste(text)
		return nil
	}
	if !namesImage(text) {
		m.composer.Paste(text)
		return nil
	}
	m.held.isOn = true
	mention := m.host.MentionImage
	return func() tea.Msg {
		answer := make(chan pasted, 1)
		go func() { // a file system that does not answer keeps this goroutine
			found, ok := mention(text)
			answer <- pasted{text, found, ok}
		}()
		timer := time.NewTimer(maxMention)
		defer timer.Stop()
		select {
		case p := <-answer:
			return p
		case <-timer.C:
			return pasted{text: text}
		}
	}
}

// namesImage reports whether a pasted text may be the path of an image.
func namesImage(text string) bool {
	line := strings.Trim(strings.TrimSpace(text), `'"`)
	return len(line) <= maxPath && !strings.Contains(line, "\n") && IsImageName(line)
}

// holdInput keeps a key or a paste for later while a paste is being looked at. Ctrl-C and Ctrl-Z
// act at once.
func (m *Model) holdInput(msg tea.Msg) bool {
	if press, ok := msg.(tea.KeyPressMsg); ok && (press.String() == "ctrl+c" || press.String() == "ctrl+z") {
		return false
	}
	if m.held.isOn {
		m.held.messages = append(m.held.messages, msg)
	}
	return m.held.isOn
}

// pasted is the answer of Host.MentionImage.
type pasted struct {
	text, mention string
	isImage       bool
}

// endPaste puts a pasted line into the input, and then what the user has typed meanwhile.
func (m *Model) endPaste(p pasted) tea.Cmd {
	m.held.isOn = false
	if !p.isImage {
		m.composer.Paste(p.text)
	} else {
		if draft, at := m.composer.Draft(); at > 0 && draft[at-1] != ' ' && draft[at-1] != '\n' {
			p.mention = " " + p.mention
		}
		m.composer.Paste(p.mention + " ")
	}
	var commands []tea.Cmd
	for len(m.held.messages) > 0 && !m.held.isOn {
		next := m.held.messages[0]
		m.held.messages = m.held.messages[1:]
		_, command := m.Update(next)
		commands = append(commands, command)
	}
	return tea.Batch(commands...)
}
