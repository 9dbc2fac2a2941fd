package config

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// foreignVariable is a form of variables that only other tools have.
type foreignVariable struct {
	pattern *regexp.Regexp
	// dialect is the tool that replaces the form; "" means that it has no other meaning anywhere.
	dialect string
	// form is the form in dowel's file: $1 is the first group of the pattern. If it is empty, dowel
	// cannot replace the variable, and why says the reason.
	form, why string
}

// foreignVariables are compiled at the first use, since only import and export need them.
var foreignVariables = sync.OnceValue(func() []foreignVariable {
	return []foreignVariable{
		{pattern: regexp.MustCompile(`\{env:([A-Za-z_][A-Za-z0-9_]*)\}`), dialect: "opencode", form: "${$1}"},
		{pattern: regexp.MustCompile(`\{env:[^}]*\}`), dialect: "opencode", why: "it is not the name of an environment variable"},
		{pattern: regexp.MustCompile(`\{file:([^}]+)\}`), dialect: "opencode", form: "${file:$1}"},
		{pattern: regexp.MustCompile(`\$\{\{\s*(?:secrets|env)\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`), form: "${$1}"},
		{pattern: regexp.MustCompile(`\$\{\{[^}]*\}\}`), why: onlyThere},
		{pattern: regexp.MustCompile(`\$\{localEnv:([A-Za-z_][A-Za-z0-9_]*)\}`), form: "${$1}"},
		{pattern: regexp.MustCompile(`\$\{(?:localWorkspaceFolder|workspaceRoot|cwd)\}`), form: "${workspaceFolder}"},
		{pattern: regexp.MustCompile(`\$\{(?:localWorkspaceFolderBasename|workspaceRootFolderName)\}`), form: "${workspaceFolderBasename}"},
		{pattern: regexp.MustCompile(`\$\([^)]*\)`), dialect: "crush", why: "dowel does not run commands to find a value"},
		{pattern: regexp.MustCompile(`\$\{(?:command|config|containerEnv|user_config|extensionInstallFolder):?\.?[^}]*\}`), why: onlyThere},
		{pattern: regexp.MustCompile(`\$\{(?:execPath|file|file[A-Z]\w+|relativeFile\w*|lineNumber|columnNumber|selectedText|defaultBuildTask)\}`), dialect: "vscode", why: onlyThere},
	}
})

const onlyThere = "only the tool that this file belongs to knows its value"

// translateVariables writes the variables of another tool in dowel's form. For a variable without
// one it records an error. The files of Claude Code have dowel's forms.
func (e *entryReader) translateVariables() {
	if e.d.isOwn() || e.d.Name == ClaudeCode {
		return
	}
	e.s.eachString(func(field, text string) string {
		text, refused := e.translateText(field, text)
		for _, body := range unknownVariables(text) {
			if !refused {
				e.refuseVariable(field, "${"+body+"}", "it is not a variable that dowel knows")
			}
		}
		return text
	})
}

// translateText translates the variables in one string. refused means that it has one without
// another form.
func (e *entryReader) translateText(field, text string) (translated string, refused bool) {
	if !strings.ContainsAny(text, "${") {
		return text, false
	}
	for _, v := range foreignVariables() {
		if v.dialect != "" && v.dialect != e.d.Name {
			continue
		}
		text = v.pattern.ReplaceAllStringFunc(text, func(found string) string {
			if v.form == "" {
				e.refuseVariable(field, found, v.why)
				refused = true
				return found
			}
			translated := v.pattern.ReplaceAllString(found, v.form)
			if path, ok := strings.CutPrefix(translated, "${file:"); ok {
				return "${file:" + e.absolutePath(strings.TrimSuffix(path, "}")) + "}"
			}
			return translated
		})
	}
	return text, refused
}

// absolutePath returns a path relative to the folder of the file that is read.
func (e *entryReader) absolutePath(path string) string {
	if filepath.IsAbs(path) || strings.HasPrefix(path, "~") {
		return path
	}
	return filepath.Join(filepath.Dir(e.s.Path), path)
}

func (e *entryReader) refuseVariable(field, variable, why string) {
	e.errorf(e.s.Where(field), "write the value, or an environment variable as ${NAME}", "%s: dowel cannot replace %s: %s", field, variable, why)
}

// unknownVariables returns the text between ${ and } of variables that dowel does not know.
func unknownVariables(text string) (unknown []string) {
	for i := 0; i < len(text); i++ {
		if strings.HasPrefix(text[i:], "$${") {
			i += 2
			continue
		}
		if !strings.HasPrefix(text[i:], "${") {
			continue
		}
		end := closingBrace(text[i:])
		if end < 0 {
			return unknown // expanding the text tells this
		}
		if body := text[i+2 : i+end]; !isVariable(body) {
			unknown = append(unknown, body)
		}
	}
	return unknown
}

// isVariable reports whether dowel can expand the text between ${ and }.
func isVariable(body string) bool {
	name, _, _ := strings.Cut(body, ":-")
	switch name {
	case "userHome", "workspaceFolder", "workspaceFolderBasename", "pathSeparator", "/":
		return true
	}
	for _, prefix := range []string{"input:", "file:"} {
		if strings.HasPrefix(body, prefix) {
			return true
		}
	}
	for _, prefix := range []string{"env://", "env:"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return rest != ""
		}
	}
	return plainName().MatchString(name)
}
