package picture

import (
	"slices"
	"strings"
)

// Protocol is how a terminal draws an image outside the renderer of cells.
type Protocol int

// The protocols.
const (
	NoProtocol Protocol = iota
	Kitty
	ITerm2
	Sixel
)

// sixelAttribute is the attribute of a terminal with sixel in its answer to DA1.
const sixelAttribute = 4

// HasSixel reports whether an answer to DA1 says that the terminal draws sixel. The first number is
// the class of the terminal.
func HasSixel(attributes []int) bool {
	return len(attributes) > 0 && slices.Contains(attributes[1:], sixelAttribute)
}

// IsITerm2 reports whether the terminal with a name (its answer to XTVERSION) has iTerm2's images.
func IsITerm2(name string) bool {
	return strings.HasPrefix(name, "iTerm2") || strings.HasPrefix(name, "WezTerm")
}

// IsITerm2Environment reports whether variables say that the terminal has iTerm2's images.
// LC_TERMINAL comes over ssh, but it also stays set in another terminal that is started from
// iTerm2, and that has a TERM_PROGRAM of its own.
func IsITerm2Environment(getenv func(string) string) bool {
	switch getenv("TERM_PROGRAM") {
	case "iTerm.app", "WezTerm":
		return true
	case "":
		return getenv("LC_TERMINAL") == "iTerm2"
	}
	return false
}

// IsMultiplexed reports whether variables say that tmux or screen is between the program and the
// terminal. They do not hand images on.
func IsMultiplexed(getenv func(string) string) bool {
	name := getenv("TERM")
	return getenv("TMUX") != "" || getenv("STY") != "" || strings.HasPrefix(name, "tmux") || strings.HasPrefix(name, "screen")
}
