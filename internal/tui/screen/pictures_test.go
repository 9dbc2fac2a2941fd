package screen

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi/kitty"
	"github.com/dowel-mcp/dowel/internal/tui/picture"
	"github.com/dowel-mcp/dowel/internal/tui/toolcard"
)

// newPicture returns an image of 20 columns and 3 rows.
func newPicture(t *testing.T, link string) toolcard.Picture {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 160, 48))); err != nil {
		t.Fatal(err)
	}
	p, err := picture.Decode(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return toolcard.Picture{Picture: p, Link: link}
}

// sendForRaw hands a message to the screen, and returns what the screen writes to the terminal.
func (d *driver) sendForRaw(msg tea.Msg) string {
	d.t.Helper()
	_, command := d.model.Update(msg)
	if command == nil {
		return ""
	}
	raw, ok := command().(tea.RawMsg)
	if !ok {
		return ""
	}
	return fmt.Sprint(raw.Msg)
}

// kittyAnswers are the answers of kitty about itself.
var kittyAnswers = []tea.Msg{
	tea.ColorProfileMsg{Profile: colorprofile.TrueColor}, tea.TerminalVersionMsg{Name: "kitty(0.42.1)"},
	uv.KittyGraphicsEvent{Options: kitty.Options{ID: picture.FirstID}, Payload: []byte("OK")},
}

// An image is on the screen as placeholders, which scroll. It goes to the terminal once, and again
// after another program had the terminal.
func TestScreenPictures(t *testing.T) {
	d := newDriver(t)
	if raw := d.sendForRaw(kittyAnswers[1]); raw != picture.Query() {
		t.Errorf("kitty is asked %q", raw)
	}
	d.send(kittyAnswers...)
	raw := d.sendForRaw(CallEnded{"1", toolcard.Card{Tool: "screen.shot", State: toolcard.Succeeded, Facts: "1 ms", Pictures: []toolcard.Picture{newPicture(t, "file:///tmp/1.png")}}})
	if !strings.HasPrefix(raw, "\x1b_Ga=T,U=1,f=100,q=2,i=16,c=20,r=3") {
		t.Errorf("the terminal gets %.100q", raw)
	}
	d.checkStyles("picture")
	count := func(width, height int) int {
		return strings.Count(strings.Join(d.rows(width, height), "\n"), string(kitty.Placeholder))
	}
	if n := count(80, 24); n != 60 {
		t.Errorf("%d placeholders, want 60", n)
	}
	if n := count(20, 24); n != 0 || !d.shows("file:///tmp") {
		t.Errorf("%d placeholders on a terminal that is too narrow, and the link is shown: %t", n, d.shows("file:///tmp"))
	}
	if n := count(80, 24); n != 60 {
		t.Errorf("%d placeholders on the wide terminal, want 60", n)
	}
	d.send(Taken{strings.Repeat("line\n", 7)}, Taken{strings.Repeat("line\n", 7)}) // 17 rows
	if n := count(80, 24); n != 40 {
		t.Errorf("%d placeholders while one of three rows is out of view, want 40", n)
	}
	for _, msg := range []tea.Msg{tea.ResumeMsg{}, edited{text: "draft"}} {
		if again := d.sendForRaw(msg); again != raw {
			t.Errorf("after %T the terminal gets %.100q", msg, again)
		}
	}
}

// Terminals without placeholders, multiplexers, and terminals with few colours get a link, and no
// question that they may show as text.
func TestScreenPicturesAsLinks(t *testing.T) {
	for name, answers := range map[string][]tea.Msg{
		"silent":    {kittyAnswers[0]},
		"tmux":      {kittyAnswers[0], tea.TerminalVersionMsg{Name: "tmux 3.5a"}},
		"no colour": {tea.ColorProfileMsg{Profile: colorprofile.ASCII}, kittyAnswers[1], kittyAnswers[2]},
		"refuses":   {kittyAnswers[0], kittyAnswers[1], uv.KittyGraphicsEvent{Options: kitty.Options{ID: picture.FirstID}, Payload: []byte("ENOTSUP:no")}},
	} {
		d := newDriver(t)
		d.send(answers...)
		raw := d.sendForRaw(CallEnded{"1", toolcard.Card{Tool: "screen.shot", State: toolcard.Succeeded, Pictures: []toolcard.Picture{newPicture(t, "file:///tmp/1.png")}}})
		if raw != "" || d.shows(string(kitty.Placeholder)) || !d.shows("png 160×48 · file:///tmp/1.png") {
			t.Errorf("%s: the terminal gets %.100q, the screen is\n%s", name, raw, strings.Join(d.rows(80, 24), "\n"))
		}
	}
	d := newDriver(t)
	for _, environment := range []tea.EnvMsg{{"TERM=linux"}, {"TERM_PROGRAM=Apple_Terminal"}} {
		if _, command := d.model.Update(environment); command != nil {
			t.Errorf("%v is asked for its name", environment)
		}
	}
	if raw := d.sendForRaw(tea.TerminalVersionMsg{Name: "tmux 3.5a"}); raw != "" {
		t.Errorf("tmux is asked %q", raw)
	}
}

// The terminal keeps a bounded number of images. The call of an older one has its link alone.
func TestScreenKeepsLatestPictures(t *testing.T) {
	d := newDriver(t)
	d.send(kittyAnswers...)
	shot := func() toolcard.Card {
		return toolcard.Card{Tool: "screen.shot", State: toolcard.Succeeded, Pictures: []toolcard.Picture{newPicture(t, "file:///tmp/1.png")}}
	}
	d.send(CallEnded{"first", shot()})
	if !d.shows(string(kitty.Placeholder)) {
		t.Fatal("the image is not shown")
	}
	raw := ""
	for i := range maxPictures {
		raw = d.sendForRaw(CallEnded{fmt.Sprint(i), shot()})
	}
	if !strings.HasPrefix(raw, picture.Delete(picture.FirstID)+"\x1b_Ga=T") {
		t.Errorf("the terminal gets %.100q", raw)
	}
	if kept := d.model.pictures; kept.bytes != maxPictures*kept.kept[0].Size() {
		t.Errorf("%d images with %d bytes are kept", len(kept.kept), kept.bytes)
	}
	d.press("ctrl+home")
	lines := d.rows(80, 24)
	if strings.Contains(strings.Join(lines[:3], "\n"), string(kitty.Placeholder)) || !strings.Contains(strings.Join(lines[:3], "\n"), "file:///tmp/1.png") {
		t.Errorf("the screen begins with\n%s", strings.Join(lines[:6], "\n"))
	}
}

// Images that do not compress make room for each other earlier, and leave no bytes behind.
func TestScreenBoundsPictures(t *testing.T) {
	m := image.NewNRGBA(image.Rect(0, 0, 1024, 768))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range m.Pix {
		m.Pix[i] = byte(random.Uint32())
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	noise, err := picture.Decode(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if noise.Size() > 1024*768*4+1<<20 {
		t.Errorf("an image takes %d bytes", noise.Size())
	}
	d := newDriver(t)
	d.send(kittyAnswers...)
	all := make([]picture.Picture, maxPictures)
	for i := range all {
		all[i] = *noise
		d.send(CallEnded{fmt.Sprint(i), toolcard.Card{Tool: "screen.shot", State: toolcard.Succeeded, Pictures: []toolcard.Picture{{Picture: &all[i], Link: "file:///tmp/1.png"}}}})
	}
	size, isKept := 0, false
	for i := range all {
		if isKept && all[i].ID == 0 {
			t.Errorf("the image %d is forgotten, an older one is not", i)
		}
		isKept = all[i].ID != 0
		size += all[i].Size()
	}
	if size > maxPictureBytes || size != d.model.pictures.bytes || !isKept {
		t.Errorf("%d bytes of images are in memory, %d are counted, and the last one is kept: %t", size, d.model.pictures.bytes, isKept)
	}
}
