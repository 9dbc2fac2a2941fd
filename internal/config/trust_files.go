package config

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// fileFact begins the line of a fact that is the content of a file.
const fileFact = "file "

// codeFiles returns a fact for the content of each file in the project that decides what the server
// does, as far as the entry names it: the env file, the program, scripts among the arguments and in
// command lines, and files of ${file:…} except in headers. Files that these import or read do not
// count, nor do files outside the project's folder, which do not come with the project.
func (s *Server) codeFiles(v Variables) (facts []fact, missing []string) {
	if s.Scope != Project {
		return nil, nil
	}
	v = v.withDefaults()
	f := &fileFinder{project: v.Workspace}
	if f.project == "" {
		f.project = filepath.Dir(s.Path)
	}
	var read []string
	v.ReadFile = func(path string) ([]byte, error) { read = append(read, path); return nil, nil }
	r := &resolver{
		Definition: &Definition{Server: s, Spec: s.Spec.clone()},
		x:          expansion{v: v, inputs: s.inputs, bare: s.findDialect().bareVariables},
		lacking:    map[string]bool{},
	}
	r.eachString(func(field, text string) string {
		if isData := strings.HasPrefix(field, "headers.") || field == "url" || strings.HasPrefix(field, "oauth."); isData {
			return text
		}
		return r.x.expandText(text)
	})
	r.resolvePaths()
	f.folder = r.Dir
	if f.folder == "" {
		f.folder = f.project
	}
	for _, path := range append(read, r.EnvFile) {
		f.addContent(path)
	}
	if r.Command != "" {
		f.addCommand(r.Command, r.Args)
	}
	f.addShellWords(r.HeadersHelper)
	return f.facts, f.missing
}

// fileFinder collects the files of an entry.
type fileFinder struct {
	project string // only files below it count
	folder  string // relative paths start here
	facts   []fact
	missing []string
}

// addCommand adds the program and the scripts among its arguments.
func (f *fileFinder) addCommand(command string, args []string) {
	if filepath.Base(command) != command || isScript(command) {
		f.addContent(command)
	}
	awaitsScript := isInterpreter(command)
	for i, arg := range args {
		if i > 0 && args[i-1] == "-m" {
			f.addModule(arg)
		}
		if f.addArgument(arg, awaitsScript) && !strings.HasPrefix(arg, "-") {
			awaitsScript = false
		}
		if strings.ContainsAny(arg, " \t\n") { // of sh -c
			f.addShellWords(arg)
		}
	}
}

// addArgument adds the file that an argument names, as PATH or FLAG=PATH, if it is code or if any
// is true. It reports whether it has added one.
func (f *fileFinder) addArgument(arg string, any bool) bool {
	path := f.locate(arg)
	if _, value, joined := strings.Cut(arg, "="); path == "" && joined {
		path = f.locate(value)
	}
	switch {
	case path != "" && (any || isCode(path)), path == "" && isScript(arg): // a missing one may appear later
		f.addContent(cmp.Or(path, arg))
		return path != ""
	}
	return false
}

// addShellWords adds the scripts that a command line names.
func (f *fileFinder) addShellWords(line string) {
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;|&()<>{}=", r) })
	for i, word := range words {
		path := f.locate(word)
		if path != "" && (strings.Contains(word, "/") && i == 0 || i > 0 && isInterpreter(words[i-1]) || isCode(path)) {
			f.addContent(path)
		}
	}
}

// addModule adds the file of a Python module, which python -m runs.
func (f *fileFinder) addModule(name string) {
	path := filepath.FromSlash(strings.ReplaceAll(name, ".", "/"))
	for _, file := range []string{path + ".py", filepath.Join(path, "__init__.py"), filepath.Join(path, "__main__.py")} {
		f.addContent(file)
	}
}

// locate returns the absolute path of a regular file in the project, or "". A symbolic link counts
// if it is in the project or points there.
func (f *fileFinder) locate(path string) string {
	if path == "" || strings.ContainsRune(path, 0) {
		return ""
	}
	path = f.absolutePath(path)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	real, err := filepath.EvalSymlinks(path)
	project, e := filepath.EvalSymlinks(f.project)
	if isBelow(path, f.project) || err == nil && e == nil && isBelow(real, project) {
		return path
	}
	return ""
}

func (f *fileFinder) absolutePath(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.folder, path)
	}
	return filepath.Clean(path)
}

// isBelow reports whether a path is inside a folder.
func isBelow(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel) && rel != "."
}

// addContent adds the fact of a file's content, if the file is in the project.
func (f *fileFinder) addContent(path string) {
	if name := path; name != "" {
		if path = f.locate(name); path == "" && isBelow(f.absolutePath(name), f.project) {
			f.missing = append(f.missing, f.absolutePath(name))
		}
	}
	if path == "" || slices.ContainsFunc(f.facts, func(other fact) bool { return other.path == path }) {
		return
	}
	shown, err := filepath.Rel(f.project, path)
	if err != nil {
		shown = path
	}
	f.facts = append(f.facts, fact{line: fileFact + QuoteWord(filepath.ToSlash(shown)), exact: hashFile(path), path: path})
}

// maxHashed is the number of bytes of a file that count. Of a larger file, the length counts too.
const maxHashed = 256 << 20

// hashFile returns a hash of a file's content. An unreadable file has the error as its content.
func hashFile(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return errorWithoutPath(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return errorWithoutPath(err)
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, io.LimitReader(file, maxHashed)); err != nil {
		return errorWithoutPath(err)
	}
	if info.Size() > maxHashed {
		fmt.Fprintf(hash, "%d bytes", info.Size())
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// interpreters run the first file among their arguments, whatever its name.
var interpreters = []string{"node", "nodejs", "bun", "deno", "tsx", "ts-node", "python", "pypy", "ruby", "perl", "php", "lua", "luajit", "sh", "bash", "zsh",
	"dash", "ksh", "fish", "java", "pwsh", "powershell", "rscript", "julia", "uv", "dotnet", "wasmtime", "osascript", "tclsh", "guile", "elixir", "groovy", "scala"}

// isInterpreter reports whether a program runs files. A version at the end of its name does not
// matter.
func isInterpreter(command string) bool {
	name := strings.ToLower(filepath.Base(filepath.FromSlash(command)))
	name = strings.TrimRight(strings.TrimSuffix(name, ".exe"), "0123456789.")
	return slices.Contains(interpreters, name)
}

// scriptExtensions are the extensions of files that a program runs. Data files are not among them,
// since a server may change its data.
var scriptExtensions = []string{".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".py", ".pyw", ".pyz", ".pyc", ".whl", ".rb", ".sh", ".bash",
	".zsh", ".fish", ".ksh", ".pl", ".pm", ".php", ".phar", ".lua", ".jar", ".class", ".ps1", ".psm1", ".cmd", ".bat", ".com", ".exe", ".dll", ".so", ".dylib",
	".wasm", ".node", ".r", ".jl", ".go", ".rs", ".java", ".kts", ".scala", ".groovy", ".clj", ".ex", ".exs", ".csx", ".fsx", ".vbs", ".awk", ".tcl",
	".scpt", ".swift", ".nu"}

// isScript reports whether a name has the extension of a script.
func isScript(name string) bool {
	return slices.Contains(scriptExtensions, strings.ToLower(filepath.Ext(name)))
}

// isCode reports whether a file is a script or a program, by its extension or its first bytes.
func isCode(path string) bool {
	if isScript(path) {
		return true
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	begin := make([]byte, 4)
	if _, err := io.ReadFull(file, begin); err != nil && err != io.ErrUnexpectedEOF {
		return false
	}
	for _, magic := range []string{"#!", "\x7fELF", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe", "MZ"} {
		if bytes.HasPrefix(begin, []byte(magic)) {
			return true
		}
	}
	return false
}
