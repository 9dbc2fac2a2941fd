package service

import (
	"context"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
)

// agentLabel is the name of the service in launchd.
const agentLabel = "dev.dowel.up"

// launchd is the service manager of macOS.
type launchd struct{}

func (launchd) path() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, "Library", "LaunchAgents", agentLabel+".plist"), nil
}

func (launchd) formatFile(s spec) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Written by dowel service install. -->
<plist version="1.0">
<dict>
	<key>Label</key>
	` + plistString(agentLabel) + `
	<key>ProgramArguments</key>
	<array>
`)
	for _, arg := range append([]string{s.program}, s.args...) {
		b.WriteString("\t\t" + plistString(arg) + "\n")
	}
	b.WriteString("\t</array>\n\t<key>WorkingDirectory</key>\n\t" + plistString(s.folder) + "\n")
	if len(s.env) > 0 {
		b.WriteString("\t<key>EnvironmentVariables</key>\n\t<dict>\n")
		for _, variable := range s.env {
			name, value, _ := strings.Cut(variable, "=")
			b.WriteString("\t\t<key>" + name + "</key>\n\t\t" + plistString(value) + "\n")
		}
		b.WriteString("\t</dict>\n")
	}
	b.WriteString("\t<key>RunAtLoad</key>\n\t<true/>\n\t<key>KeepAlive</key>\n\t<dict>\n\t\t<key>SuccessfulExit</key>\n\t\t<false/>\n\t</dict>\n")
	for _, key := range []string{"StandardOutPath", "StandardErrorPath"} {
		b.WriteString("\t<key>" + key + "</key>\n\t" + plistString(s.log) + "\n")
	}
	b.WriteString("</dict>\n</plist>\n")
	return b.String()
}

// plistString returns a text as an element of a property list.
func plistString(text string) string {
	var b strings.Builder
	b.WriteString("<string>")
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	b.WriteString("</string>")
	return b.String()
}

// domain is launchd's name for the user's graphical session.
func (launchd) domain() string { return fmt.Sprintf("gui/%d", os.Getuid()) }

func (l launchd) start(ctx context.Context, path string) error {
	_ = l.stop(ctx, path) // fails if the service is not loaded yet
	return runQuietly(ctx, "launchctl", "bootstrap", l.domain(), path)
}

func (l launchd) stop(ctx context.Context, _ string) error {
	return runQuietly(ctx, "launchctl", "bootout", l.domain()+"/"+agentLabel)
}

func (launchd) forget(context.Context) error { return nil }

func (launchd) logHint() string {
	return "Its log: " + filepath.Join(factory.StateDir(), "service.log")
}
