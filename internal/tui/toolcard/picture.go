package toolcard

import (
	"fmt"

	"github.com/dowel-mcp/dowel/internal/tui/picture"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
	"github.com/dowel-mcp/dowel/internal/tui/transcript"
)

// Picture is an image in a result, with the address of a file that has it whole.
type Picture struct {
	*picture.Picture
	Link   string
	Number int // after /open; 0 means that it has none yet
}

// pictureLines returns the images, if the terminal shows images and is wide enough, and their
// links.
func (c *Card) pictureLines(look transcript.Look) (lines []string) {
	bar := look.Theme.Dim.Render("  │ ")
	for _, p := range c.Pictures {
		if look.Pictures && p.ID != 0 && p.Columns <= look.Width-4 {
			for _, line := range p.Lines() {
				lines = append(lines, bar+line)
			}
		}
		caption := fmt.Sprintf("%s %d×%d", p.Format, p.Width, p.Height)
		if p.Link != "" {
			caption += " · " + p.Link
		}
		if look.Opens && p.Number > 0 {
			caption += fmt.Sprintf(" · /open %d", p.Number)
		}
		for _, part := range theme.Break(oneLine(caption), look.Width-4) {
			lines = append(lines, bar+look.Theme.Dim.Render(part))
		}
	}
	return lines
}
