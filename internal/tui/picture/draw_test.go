package picture

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// onlyImage matches an image in one of the protocols, with nothing beside it.
var onlyImage = regexp.MustCompile("^(?:(?:\x1b_G[a-zA-Z0-9=,]*;[A-Za-z0-9+/=]*\x1b\\\\)+|\x1b]1337;File=[a-zA-Z0-9=;]*:[A-Za-z0-9+/=]*\x07|\x1bP0;1q[\"#!$;0-9?-~-]*\x1b\\\\)$")

// decodeSixel returns the image of a control sequence. It knows what encodeSixel writes.
func decodeSixel(t *testing.T, sequence string) image.Image {
	t.Helper()
	body, hasEnd := strings.CutSuffix(strings.TrimPrefix(sequence, "\x1bP0;1q"), "\x1b\\")
	var w, h int
	if _, err := fmt.Sscanf(body, `"1;1;%d;%d`, &w, &h); err != nil || !hasEnd {
		t.Fatalf("%.50q: %v", sequence, err)
	}
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	colors := map[int]color.RGBA{}
	var x, top, current int
	for _, part := range regexp.MustCompile(`#\d+(?:;2;\d+;\d+;\d+)?|!\d+[?-~]|[$?-~-]`).FindAllString(body[1:], -1) {
		n := 1
		switch part[0] {
		case '#':
			var r, g, b int
			if found, _ := fmt.Sscanf(part, "#%d;2;%d;%d;%d", &current, &r, &g, &b); found == 4 {
				colors[current] = color.RGBA{uint8(r * 255 / 100), uint8(g * 255 / 100), uint8(b * 255 / 100), 255}
			}
			continue
		case '$':
			x = 0
			continue
		case '-':
			x, top = 0, top+6
			continue
		case '!':
			n, _ = strconv.Atoi(part[1 : len(part)-1])
		}
		for range n {
			for y := range 6 {
				if (part[len(part)-1]-'?')>>y&1 == 1 {
					if x >= w || top+y >= h {
						t.Fatalf("a pixel is at %d, %d, outside %d by %d", x, top+y, w, h)
					}
					m.SetRGBA(x, top+y, colors[current])
				}
			}
			x++
		}
	}
	return m
}

func TestDraw(t *testing.T) {
	for _, tt := range []struct {
		name          string
		width, height int
		area          Area
		cells, pixels image.Point
	}{
		{"small", 64, 32, Area{Columns: 80, Rows: 23, CellWidth: 10, CellHeight: 20}, image.Pt(7, 2), image.Pt(64, 32)},
		{"wide", 2000, 1000, Area{Columns: 80, Rows: 23, CellWidth: 10, CellHeight: 20}, image.Pt(80, 20), image.Pt(800, 400)},
		{"high", 100, 3000, Area{Columns: 80, Rows: 23, CellWidth: 10, CellHeight: 20}, image.Pt(2, 23), image.Pt(14, 460)},
		{"unknown cells", 2000, 1000, Area{Columns: 80, Rows: 23}, image.Pt(80, 20), image.Pt(480, 240)},
		{"no room", 64, 32, Area{Columns: 1, Rows: 0}, image.Pt(1, 1), image.Pt(2, 1)},
	} {
		p, err := Decode(encodePNG(t, drawTestImage(tt.width, tt.height)))
		if err != nil {
			t.Fatal(err)
		}
		for _, with := range []Protocol{Kitty, ITerm2, Sixel} {
			drawn, err := p.Draw(with, tt.area)
			if err != nil || !onlyImage.MatchString(drawn) {
				t.Fatalf("%s, protocol %d: %.100q, %v", tt.name, with, drawn, err)
			}
			var m image.Image
			switch size := fmt.Sprintf("c=%d,r=%d,", tt.cells.X, tt.cells.Y); with {
			case Kitty:
				var first string
				if m, first, _ = sentImage(t, drawn); !strings.Contains(first, size) || strings.Contains(first, "U=1") {
					t.Errorf("%s: kitty gets %s, want %s", tt.name, first, size)
				}
			case ITerm2:
				head, payload, _ := strings.Cut(strings.TrimSuffix(drawn, "\x07"), ":")
				data, err := base64.StdEncoding.DecodeString(payload)
				if err == nil {
					m, err = png.Decode(bytes.NewReader(data))
				}
				if want := fmt.Sprintf("\x1b]1337;File=inline=1;size=%d;width=%d;height=%d;preserveAspectRatio=1", len(data), tt.cells.X, tt.cells.Y); err != nil || head != want {
					t.Fatalf("%s: iTerm2 gets %q, want %q, %v", tt.name, head, want, err)
				}
			case Sixel:
				if m = decodeSixel(t, drawn); m.Bounds().Size() != tt.pixels {
					t.Errorf("%s: sixel has %v pixels, want %v", tt.name, m.Bounds().Size(), tt.pixels)
				}
			}
			if tt.name == "no room" {
				continue
			}
			last := m.Bounds().Max
			if r, _, b, _ := m.At(last.X-1, last.Y-1).RGBA(); b < 0xE000 || r > 0x2000 {
				t.Errorf("%s, protocol %d: the right half is not blue", tt.name, with)
			}
			if r, _, b, _ := m.At(0, 0).RGBA(); r < 0xE000 || b > 0x2000 {
				t.Errorf("%s, protocol %d: the left half is not red", tt.name, with)
			}
		}
	}
}

// A transparent image has the terminal's background, since sixel has no transparent colours.
func TestDrawTransparent(t *testing.T) {
	p, err := Decode(encodePNG(t, image.NewNRGBA(image.Rect(0, 0, 8, 8))))
	if err != nil {
		t.Fatal(err)
	}
	for background, want := range map[color.Color]uint32{color.White: 0xffff, color.Black: 0} {
		drawn, err := p.Draw(Sixel, Area{Columns: 80, Rows: 23, Background: background})
		if err != nil {
			t.Fatal(err)
		}
		if r, _, _, _ := decodeSixel(t, drawn).At(3, 3).RGBA(); r != want {
			t.Errorf("the background is %x, want %x", r, want)
		}
	}
	if _, err := p.Draw(NoProtocol, Area{}); err == nil {
		t.Error("an image is drawn without a protocol")
	}
	p.Forget()
	if _, err := p.Draw(Sixel, Area{}); !errors.Is(err, ErrForgotten) {
		t.Error(err)
	}
}

func TestProtocols(t *testing.T) {
	for _, tt := range []struct {
		variables                  map[string]string
		isITerm2, isBehindMultiple bool
	}{
		{map[string]string{"TERM_PROGRAM": "iTerm.app"}, true, false},
		{map[string]string{"TERM_PROGRAM": "WezTerm"}, true, false},
		{map[string]string{"LC_TERMINAL": "iTerm2"}, true, false},
		{map[string]string{"LC_TERMINAL": "iTerm2", "TERM_PROGRAM": "vscode"}, false, false},
		{map[string]string{"LC_TERMINAL": "iTerm2", "TERM_PROGRAM": "tmux", "TMUX": "/tmp/x"}, false, true},
		{map[string]string{"TERM": "screen-256color"}, false, true},
		{map[string]string{"TERM": "tmux"}, false, true},
		{map[string]string{"STY": "1.x"}, false, true},
		{map[string]string{"TERM": "xterm-256color"}, false, false},
	} {
		getenv := func(name string) string { return tt.variables[name] }
		if IsITerm2Environment(getenv) != tt.isITerm2 || IsMultiplexed(getenv) != tt.isBehindMultiple {
			t.Errorf("%v: iTerm2 %t, multiplexed %t", tt.variables, !tt.isITerm2, IsMultiplexed(getenv))
		}
	}
	for _, tt := range []struct {
		attributes []int
		want       bool
	}{{[]int{62, 4, 22}, true}, {[]int{4, 6}, false}, {[]int{4}, false}, {nil, false}, {[]int{62, 22}, false}} {
		if HasSixel(tt.attributes) != tt.want {
			t.Errorf("%v: sixel is %t", tt.attributes, !tt.want)
		}
	}
	for name, want := range map[string]bool{"iTerm2 3.5.1": true, "WezTerm 20240203": true, "kitty(0.42.1)": false, "": false} {
		if IsITerm2(name) != want {
			t.Errorf("%q: %t", name, !want)
		}
	}
}
