package elicit

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/webpage"
)

// openURL shows the whole URL and asks whether to open it. A nil error means that the user agreed
// to visit the page, not that the task there is finished.
func (a *Asker) openURL(ctx context.Context, r *client.ElicitRequest) error {
	u, err := url.Parse(r.URL)
	if err != nil {
		return fmt.Errorf("the server sent an invalid URL: %w", err)
	}
	a.printRequest(r, "asks you to visit a page:")
	before, host, after := SplitURL(r.URL)
	a.printLine("\n    %s%s%s\n", before, a.Out.Styled("1;4", host), after)
	for _, doubt := range URLWarnings(u) {
		a.printLine("  %s %s", a.Out.Red("Careful:"), doubt)
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		a.printLine("  dowel opens web pages only.")
		return errDeclined
	}
	a.printLine("%s", a.Out.Dim("  Nothing has been opened. Look at the name in bold: do you want to go there?"))
	for {
		answer, err := a.readReply(ctx, "  [o]pen it, I open it [m]yself, [N]o:")
		if err != nil {
			return err
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "o", "open", "y", "yes":
			if err := webpage.Open(r.URL); err != nil {
				a.printLine("  %v: please open it yourself", err)
			}
			return nil
		case "m", "myself":
			return nil
		case "", "n", "no":
			return errDeclined
		}
	}
}

// SplitURL splits a URL around its host, so that the host can be highlighted. All parts are
// escaped; see escapeURL. It parses like a browser, which treats a backslash as a slash.
func SplitURL(raw string) (before, host, after string) {
	start := 0
	if i := strings.Index(raw, "://"); i >= 0 {
		start = i + len("://")
	}
	end := len(raw)
	if i := strings.IndexAny(raw[start:], `/?#\`); i >= 0 {
		end = start + i
	}
	if i := strings.LastIndexByte(raw[start:end], '@'); i >= 0 {
		start += i + 1
	}
	return escapeURL(raw[:start]), escapeURL(raw[start:end]), escapeURL(raw[end:])
}

// escapeURL escapes control characters and characters outside ASCII, which could imitate others.
func escapeURL(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == utf8.RuneError, r < ' ', r == 0x7f, r > 0x7f:
			fmt.Fprintf(&b, "\\u{%x}", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// URLWarnings returns a sentence for each suspicious part of a URL.
func URLWarnings(u *url.URL) (all []string) {
	host := strings.ToLower(u.Hostname())
	switch {
	case strings.Contains(host, "xn--"):
		all = append(all, "the name holds punycode (xn--): browsers show it in letters that can imitate another name")
	case strings.ContainsFunc(host, func(r rune) bool { return r > 0x7f }):
		all = append(all, "the name holds letters that can imitate others")
	}
	if u.User != nil {
		all = append(all, "the part before @ is not the name of the site")
	}
	if ip := net.ParseIP(host); u.Scheme == "http" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		all = append(all, "the page is not protected (http)")
	}
	return all
}
