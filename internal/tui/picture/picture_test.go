package picture

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// drawTestImage returns a red image with a blue right half.
func drawTestImage(width, height int) image.Image {
	m := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.RGBA{255, 0, 0, 255}, color.RGBA{0, 0, 255, 255}})
	for y := range height {
		for x := width / 2; x < width; x++ {
			m.SetColorIndex(x, y, 1)
		}
	}
	return m
}

func encodePNG(t *testing.T, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var graphics = regexp.MustCompile("\x1b_G([^;]*);([A-Za-z0-9+/=]*)\x1b\\\\")

// sentImage returns the image in the control sequences of Transmit, which hold nothing else.
func sentImage(t *testing.T, sequences string) (m image.Image, first string, data []byte) {
	t.Helper()
	if rest := graphics.ReplaceAllString(sequences, ""); rest != "" {
		t.Fatalf("%.100q is not graphics", rest)
	}
	var payload strings.Builder
	for i, part := range graphics.FindAllStringSubmatch(sequences, -1) {
		if i == 0 {
			first = part[1]
		}
		if len(part[2]) > 4096 || len(part[2])%4 != 0 {
			t.Errorf("a part has %d bytes", len(part[2]))
		}
		payload.WriteString(part[2])
	}
	data, err := base64.StdEncoding.DecodeString(payload.String())
	if err != nil {
		t.Fatal(err)
	}
	m, err = png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return m, first, data
}

func TestDecode(t *testing.T) {
	var asJPEG, asGIF bytes.Buffer
	if err := jpeg.Encode(&asJPEG, drawTestImage(64, 32), nil); err != nil {
		t.Fatal(err)
	}
	if err := gif.Encode(&asGIF, drawTestImage(64, 32), nil); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name          string
		data          []byte
		format        string
		columns, rows int
		sent          image.Point
	}{
		{"small", encodePNG(t, drawTestImage(1, 1)), "png", 1, 1, image.Pt(1, 1)},
		{"PNG", encodePNG(t, drawTestImage(64, 32)), "png", 8, 2, image.Pt(64, 32)},
		{"JPEG", asJPEG.Bytes(), "jpeg", 8, 2, image.Pt(64, 32)},
		{"GIF", asGIF.Bytes(), "gif", 8, 2, image.Pt(64, 32)},
		{"large", encodePNG(t, drawTestImage(2000, 1000)), "png", 60, 15, image.Pt(1024, 512)},
		{"high", encodePNG(t, drawTestImage(100, 3000)), "png", 1, 16, image.Pt(25, 768)},
		{"flat", encodePNG(t, drawTestImage(3000, 1)), "png", 60, 1, image.Pt(1024, 1)},
	} {
		p, err := Decode(tt.data)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if p.Format != tt.format || p.Columns != tt.columns || p.Rows != tt.rows {
			t.Errorf("%s: %s with %d columns and %d rows", tt.name, p.Format, p.Columns, p.Rows)
		}
		p.ID = 20
		m, first, _ := sentImage(t, p.Transmit())
		if m.Bounds().Size() != tt.sent || !strings.Contains(first, "a=T,U=1") || !strings.Contains(first, "i=20,") {
			t.Errorf("%s: %v is sent with %s", tt.name, m.Bounds(), first)
		}
		if r, _, b, _ := m.At(m.Bounds().Max.X-1, 0).RGBA(); b < 0xE000 || r > 0x2000 {
			t.Errorf("%s: the right half is not blue", tt.name)
		}
		lines := p.Lines()
		if len(lines) != p.Rows {
			t.Errorf("%s: %d lines", tt.name, len(lines))
		}
		for _, line := range lines {
			if w := ansi.StringWidth(line); w != p.Columns || !strings.HasPrefix(line, "\x1b[38;5;20m\U0010EEEE") {
				t.Errorf("%s: a line has %d columns: %q", tt.name, w, line)
			}
		}
	}
}

// chunk returns a part of a PNG file.
func chunk(kind string, data []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	body := append([]byte(kind), data...)
	return binary.BigEndian.AppendUint32(append(out, body...), crc32.ChecksumIEEE(body))
}

// No byte of a foreign file reaches the terminal, and a file that pretends to be huge is refused.
func TestHostileImages(t *testing.T) {
	plain := encodePNG(t, drawTestImage(4, 4))
	const header = 8 + 25 // the signature and IHDR
	evil := "\x1b]52;c;ZXZpbA==\x07\x1b\\evil"
	text := append(append(append([]byte{}, plain[:header]...), chunk("tEXt", []byte("Comment\x00"+evil))...), plain[header:]...)
	text = append(text, evil...)
	p, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	p.ID = FirstID
	if _, _, data := sentImage(t, p.Transmit()); bytes.Contains(data, []byte("evil")) || bytes.Contains(data, []byte("tEXt")) {
		t.Error("the terminal gets parts of the file")
	}
	for _, with := range []Protocol{Kitty, ITerm2, Sixel} {
		if drawn, err := p.Draw(with, Area{Columns: 80, Rows: 23}); err != nil || !onlyImage.MatchString(drawn) {
			t.Errorf("protocol %d: %.200q, %v", with, drawn, err)
		}
	}
	size := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 100_000), 100_000)
	bomb := append(append([]byte{}, plain[:8]...), chunk("IHDR", append(size, 8, 2, 0, 0, 0))...)
	for name, data := range map[string][]byte{
		"bomb": bomb, "cut": plain[:len(plain)/2], "text": []byte(evil), "empty": nil, "long": make([]byte, MaxBytes+1), "svg": []byte("<svg/>"),
	} {
		if p, err := Decode(data); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestHasPlaceholders(t *testing.T) {
	for name, want := range map[string]bool{
		"kitty(0.42.1)": true, "ghostty 1.2.0": true, "tmux 3.5a": false, "WezTerm 20240203": false, "XTerm(390)": false, "iTerm2 3.5": false, "foot(1.20)": false, "": false,
	} {
		if HasPlaceholders(name) != want {
			t.Errorf("%q: %t", name, !want)
		}
	}
}
