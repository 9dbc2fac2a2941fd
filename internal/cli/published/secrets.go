package published

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/config/leftovers"
	"github.com/dowel-mcp/dowel/internal/install"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/wirename"
)

// secretFiles are secrets that the user has typed for one server. Each becomes a file that only the
// user can read, and the entry refers to it as ${file:PATH}. So no configuration file has a secret,
// and dowel finds it however it was started.
type secretFiles struct {
	folder  string            // of the server; it exists only after write
	secrets map[string]string // by the name of the file
}

// newSecretFiles chooses a folder that does not exist, so that two servers with one name, in files
// that dowel reads at different times, do not share secrets.
func newSecretFiles(server string) (*secretFiles, error) {
	root, err := leftovers.SecretsFolder()
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(root, "{}") {
		return nil, fmt.Errorf("the folder %s cannot be named in a variable", root)
	}
	base := filepath.Join(root, wirename.Fit(server))
	folder := base
	for n := 2; ; n++ {
		if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
			return &secretFiles{folder: folder, secrets: map[string]string{}}, nil
		}
		folder = fmt.Sprintf("%s-%d", base, n)
	}
}

// addSecret adds a secret, and returns the name of its file: name, with a number if that is taken.
func (f *secretFiles) addSecret(name, secret string) string {
	free := name
	for n := 2; f.secrets[free] != ""; n++ {
		free = fmt.Sprintf("%s_%d", name, n)
	}
	f.secrets[free] = secret
	return free
}

// reference returns the variable of a configuration file for a secret.
func (f *secretFiles) reference(name string) string {
	return "${file:" + tildePath(filepath.Join(f.folder, name)) + "}"
}

// tildePath writes a path below the home folder with ~, as configuration files may.
func tildePath(path string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	below, err := filepath.Rel(home, path)
	if err != nil || !filepath.IsLocal(below) {
		return path
	}
	return "~/" + filepath.ToSlash(below)
}

// write stores the secrets. If it fails, it leaves no file.
func (f *secretFiles) write() (err error) {
	if err := os.MkdirAll(filepath.Dir(f.folder), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(f.folder, 0o700); err != nil { // an existing folder belongs to another server
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(f.folder))
		}
	}()
	for name, secret := range f.secrets {
		if err := writePrivateFile(filepath.Join(f.folder, name), secret+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// writePrivateFile creates a file, and returns when it is on the disk.
func writePrivateFile(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return cmp.Or(err, file.Sync(), file.Close())
}

// askSecrets asks on a terminal for the required secrets that --set does not give, and does not
// show what the user types. An empty answer leaves the environment variable that
// [install.Plan.Fill] has chosen. The result is nil if the user types no secret.
func (a *addition) askSecrets(ctx context.Context, p *install.Plan, given, values install.Values) (*secretFiles, error) {
	terminal := term.Terminal(a.f.Stdin)
	if terminal == nil || a.f.JSON || a.dry || a.flags.yes {
		return nil, nil
	}
	var files *secretFiles
	for _, in := range p.Inputs {
		if !in.Secret || !in.Required || in.Default != "" || len(given[in.Name]) > 0 {
			continue
		}
		if files == nil {
			var err error
			if files, err = newSecretFiles(cmp.Or(a.flags.as, p.Name)); err != nil {
				a.f.Warn("%v, so secrets are read from the environment", err)
				return nil, nil
			}
		}
		secret, err := a.askSecret(ctx, terminal, p, in)
		if err != nil {
			return nil, err
		}
		switch {
		case secret == "":
		case install.IsVariable(secret): // the user refers to a secret that is elsewhere
			values[in.Name] = []string{secret}
		default:
			name := files.addSecret(in.Variable(), secret)
			values[in.Name] = []string{files.reference(name)}
		}
	}
	if files == nil || len(files.secrets) == 0 {
		return nil, nil
	}
	return files, nil
}

// askSecret asks for one secret until it is valid or empty. The terminal shows nothing that the
// user types meanwhile.
func (a *addition) askSecret(ctx context.Context, terminal *os.File, p *install.Plan, in install.Input) (string, error) {
	restore, err := term.HideInput(terminal)
	if err != nil {
		return "", fmt.Errorf("cannot hide what you type: %w; use --set %s='${%s}'", err, in.Name, in.Variable())
	}
	defer restore()
	fmt.Fprintf(a.f.Stdout, "%s: %s\n", a.f.Stdout.Bold(term.RevealLine(in.Name)), term.RevealLine(describeInput(in)))
	for {
		fmt.Fprintf(a.f.Stdout, "  value, not shown (Enter alone: the environment variable %s): ", in.Variable())
		answer, err := a.in.Next(ctx)
		fmt.Fprintln(a.f.Stdout)
		if errors.Is(err, io.EOF) {
			return "", exit.Usagef("%s needs a value for %s", p.Name, in.Name)
		}
		answer = strings.TrimSpace(answer)
		if err != nil || answer == "" {
			return "", err
		}
		if err := in.Check(answer); err != nil {
			fmt.Fprintln(a.f.Stdout, "  "+term.Line(err.Error()))
			continue
		}
		return answer, nil
	}
}
