// Package browser tests the console in a real browser, Debian's Chromium, against a running dowel.
package browser
