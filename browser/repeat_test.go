//go:build linux

package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A user marks a call, compares another one with it, exports the messages, and repeats a recorded
// call with other arguments: by mouse, and then by keyboard.
func TestRepeatedCalls(t *testing.T) {
	u, p := openConsole(t)
	p.do(chromedp.Navigate(u.url + "/console/wire?q=tool:echo|create_issue"))
	p.click(".row", "echo")
	p.sees("Copy as")
	p.click("#inspector button", "Mark")
	p.until(`new URLSearchParams(location.search).has("mark")`)
	p.click(".row", "create_issue")
	p.click("#inspector button", "Compare with")
	p.until(`document.getElementById("dialog").open`)
	p.until(`document.querySelector("#dialog .removed")?.textContent.includes("message") || document.querySelector("#dialog .diff").textContent.includes("- ")`)
	if rows := eval[string](p, `[...document.querySelectorAll("#dialog .differs th")].map(e => e.textContent).join(" ")`); !strings.Contains(rows, "Server") || strings.Contains(rows, "Method") {
		t.Errorf("these properties differ: %s", rows)
	}
	numbers := eval[string](p, `(q => q.get("mark") + "," + q.get("sel").replace("op:", ""))(new URLSearchParams(location.search))`)
	if text := u.run(false, "wire", "--compare", numbers); !strings.Contains(text, "≠ Server") || !strings.Contains(text, "+ ") || !strings.Contains(text, "- ") {
		t.Errorf("dowel wire --compare %s: %s", numbers, text)
	}
	p.checkAccessibility("comparison", looks[0])
	p.checkWidth("comparison")
	p.click("#dialog button", "Close")
	p.click(".bar button", "HAR")
	p.sees("wire.har")
	p.click("#inspector button", "curl")
	p.sees("Copied")
	p.checkAccessibility("repeat", looks[0])
	p.click("#inspector a", "Edit and run")
	p.until(`location.pathname.endsWith("/github/tool/create_issue")`)
	p.until(`document.querySelector(".form textarea, .form input")?.value === "dowel/dowel"`)
	p.fill("/Title", "Once more")
	p.click(".run", "Run")
	p.until(`document.querySelectorAll(".calls li").length === 1`)
	p.press("gw")
	p.until(`location.pathname.endsWith("/wire")`)
	p.until(`[...document.querySelectorAll(".row")].some(r => r.textContent.includes("console"))`)
	eval[chromedp.Void](p, "document.querySelector('.list').focus()")
	p.press(kb.ArrowUp)
	p.press("m")
	p.until(`new URLSearchParams(location.search).has("mark")`)
	p.press(kb.ArrowUp)
	p.press("c")
	p.until(`document.getElementById("dialog").open`)
	p.press(kb.Escape)
	p.until(`!document.getElementById("dialog").open`)
	p.do(chromedp.Navigate(u.url + "/console/wire?q=tool:echo"))
	p.until(`document.querySelectorAll(".row").length > 0 && document.querySelector(".row").textContent.includes("echo")`)
	eval[chromedp.Void](p, "document.querySelector('.list').focus()")
	p.press(kb.ArrowUp)
	p.press("e")
	p.until(`location.pathname.endsWith("/everything/tool/echo")`)
	p.until(`document.querySelector(".form textarea, .form input")?.value === "hello"`)
	p.checkQuiet()
}
