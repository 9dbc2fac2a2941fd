// Package webpage opens pages in the user's browser.
package webpage

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Check fails unless a browser may open a URL: the scheme is http or https, and no character could
// make a program take the URL for something else.
func Check(page string) error {
	u, err := url.Parse(page)
	if err != nil {
		return errors.New("the address of the page is malformed")
	}
	plain := !strings.ContainsFunc(page, func(r rune) bool { return r <= ' ' || r == '"' || r == 0x7f })
	isName := !strings.ContainsFunc(u.Host, func(r rune) bool { return !isNameCharacter(r) })
	if !plain || u.Host == "" || !isName || !strings.HasPrefix(page, "https://") && !strings.HasPrefix(page, "http://") {
		return fmt.Errorf("the page has the address %q, which a browser must not open: want one of https or http", page)
	}
	return nil
}

// isNameCharacter reports whether a host with a port may have a character. Names in other alphabets
// may.
func isNameCharacter(r rune) bool {
	return r >= 0x80 || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".-_:[]%", r)
}

// encodeForShells encodes the characters of a page's address that a shell could read as its own:
// some programs that open pages are scripts. Only "&" stays, which separates parameters.
var encodeForShells = strings.NewReplacer("$", "%24", "`", "%60", "'", "%27", "(", "%28", ")", "%29", ";", "%3B", "|", "%7C", "<", "%3C", ">", "%3E",
	"^", "%5E", "{", "%7B", "}", "%7D", "!", "%21", "*", "%2A", `\`, "%5C")

// Open opens a page in the user's browser, without a shell. It returns when the browser was
// started. It opens pages of http and https only, and fails if there is no desktop. The environment
// variable BROWSER names another browser; with "none", Open fails.
func Open(page string) error {
	if err := Check(page); err != nil {
		return err
	}
	args, err := browserCommand(runtime.GOOS, os.Getenv, exec.LookPath)
	if err != nil {
		return err
	}
	cmd := exec.Command(args[0], append(args[1:], encodeForShells.Replace(page))...)
	detachCommand(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("the browser was not opened: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	return nil
}

// CanOpen reports whether [Open] finds a browser on this machine.
func CanOpen() bool {
	_, err := browserCommand(runtime.GOOS, os.Getenv, exec.LookPath)
	return err == nil
}

// browserCommand returns the command to which the address of a page is appended.
func browserCommand(system string, getenv func(string) string, lookPath func(string) (string, error)) ([]string, error) {
	if browser, _, _ := strings.Cut(getenv("BROWSER"), ":"); browser != "" && system != "windows" {
		words := strings.Fields(strings.ReplaceAll(browser, "%s", ""))
		if len(words) == 0 || words[0] == "none" {
			return nil, errors.New("no browser is opened, because BROWSER says so")
		}
		return words, nil
	}
	switch system {
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}, nil
	case "darwin":
		return []string{"open"}, nil
	}
	isWSL := getenv("WSL_DISTRO_NAME") != ""
	if isWSL { // wslview would pass the address through PowerShell
		if path, err := lookPath("rundll32.exe"); err == nil {
			return []string{path, "url.dll,FileProtocolHandler"}, nil
		}
	}
	switch {
	case isWSL:
	case getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "":
		return nil, errors.New("no browser is opened, because there is no desktop here")
	}
	path, err := lookPath("xdg-open")
	if err != nil {
		return nil, errors.New("no browser is opened, because there is no xdg-open (BROWSER can name another program)")
	}
	return []string{path}, nil
}
