package screen

import (
	"slices"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/dowel-mcp/dowel/internal/tui/picture"
	"github.com/dowel-mcp/dowel/internal/tui/toolcard"
)

// pictures are the images that the terminal has, if it can show images.
type pictures struct {
	hasColors bool // a placeholder names its image by one of 256 colours
	isReady   bool // the terminal has said that it can show images
	isDrawing bool // an image that will be shown alone
	terminal  terminal
	kept      []keptPicture
	bytes     int // of the kept ones
	next      int // of the IDs
}

// keptPicture is an image and the call that it belongs to.
type keptPicture struct {
	toolcard.Picture
	card *toolcard.Card
}

// maxPictures and maxPictureBytes limit the images in the terminal and in memory. The calls of
// older ones show a link alone.
const (
	maxPictures     = 64
	maxPictureBytes = 32 << 20
)

// updatePictures handles an answer of the terminal. ok is false for other messages.
func (m *Model) updatePictures(msg tea.Msg) (command tea.Cmd, ok bool) {
	switch msg := msg.(type) {
	case tea.EnvMsg:
		return m.pictures.terminal.readEnvironment(msg), true
	case tea.TerminalVersionMsg:
		m.pictures.terminal.name = msg.Name
		if picture.HasPlaceholders(msg.Name) {
			return tea.Raw(picture.Query()), true
		}
	case uv.PrimaryDeviceAttributesEvent:
		return m.pictures.terminal.readAttributes(msg), true
	case uv.CellSizeEvent:
		m.pictures.terminal.cellWidth, m.pictures.terminal.cellHeight = msg.Width, msg.Height
	case PictureOpened:
		return m.openPicture(msg.Number), true
	case pictureDrawn:
		return m.showDrawn(msg), true
	case pictureClosed:
		return m.closePicture(msg), true
	case tea.ColorProfileMsg:
		m.pictures.hasColors = msg.Profile >= colorprofile.ANSI256
	case uv.KittyGraphicsEvent:
		if msg.Options.ID == picture.FirstID && string(msg.Payload) == "OK" {
			m.pictures.isReady = true
			return m.transmitAll(), true
		}
	case tea.ResumeMsg: // the terminal forgets the images of a screen that the program leaves
		return m.transmitAll(), true
	default:
		return nil, false
	}
	return nil, true
}

// showsPictures reports whether placeholders become images.
func (p *pictures) showsPictures() bool { return p.isReady && p.hasColors }

// addPictures gives the images of a call to the terminal, instead of the oldest ones if there are
// too many.
func (m *Model) addPictures(card *toolcard.Card) tea.Cmd {
	p := &m.pictures
	sequences := ""
	for i := range card.Pictures {
		one := &card.Pictures[i]
		one.ID = picture.FirstID + p.next%(picture.LastID-picture.FirstID+1)
		p.next++
		one.Number = p.next
		p.kept = append(p.kept, keptPicture{*one, card})
		p.bytes += one.Size()
		for len(p.kept) > maxPictures || p.bytes > maxPictureBytes {
			sequences += picture.Delete(p.kept[0].ID)
			p.bytes -= p.kept[0].Size()
			p.kept[0].Forget()
			p.kept[0].card.Touch()
			p.kept = slices.Delete(p.kept, 0, 1)
		}
		sequences += one.Transmit()
	}
	if sequences == "" || !p.showsPictures() {
		return nil
	}
	return tea.Raw(sequences)
}

// transmitAll gives all images to the terminal.
func (m *Model) transmitAll() tea.Cmd {
	sequences := ""
	for _, one := range m.pictures.kept {
		sequences += one.Transmit()
	}
	if sequences == "" || !m.pictures.showsPictures() {
		return nil
	}
	return tea.Raw(sequences)
}
