package chat

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/tui/screen"
)

// themes are the words after /theme. Each chooses the colours for a background or, for auto, the
// colours that the terminal reports.
var themes = []string{string(screen.Dark), string(screen.Light), string(screen.Auto)}

// changeTheme sets the colours of the full screen.
func (c *conversation) changeTheme(_ context.Context, word string) error {
	switch {
	case c.screen == nil:
		return exit.Usagef("/theme is for the full screen: here the terminal's own colours are used")
	case word == "":
		c.view.Note("/theme dark or /theme light sets the colours; /theme auto follows the terminal")
	case !slices.Contains(themes, word):
		return exit.Usagef("/theme %s: want %s%s", word, strings.Join(themes, ", "), suggest.ForFlag(word, themes))
	default:
		c.screen.post(screen.ThemeChosen{Theme: screen.Theme(word)})
		c.view.Note("theme %s", word)
	}
	return nil
}

// openPicture shows an image of a result on the whole screen.
func (c *conversation) openPicture(_ context.Context, word string) error {
	number := 0
	if word != "" {
		var err error
		if number, err = strconv.Atoi(word); err != nil || number < 1 {
			return exit.Usagef("/open %s: write the number behind /open beside an image", word)
		}
	}
	if c.screen == nil {
		return exit.Usagef("/open is for the full screen: here an image of a result is in the file that the result names")
	}
	c.screen.post(screen.PictureOpened{Number: number})
	return nil
}

// undoEdit takes back the last change of a file by a files server.
func (c *conversation) undoEdit(ctx context.Context, _ string) error {
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	outcome, err := rt.UndoEdit()
	if err == nil {
		if folder, err := os.Getwd(); err == nil { // shorter, and as the user names the file
			outcome = strings.ReplaceAll(outcome, folder+string(filepath.Separator), "")
		}
		c.view.Note("%s; the model does not know: tell it if that matters", term.RevealLine(outcome))
	}
	return err
}
