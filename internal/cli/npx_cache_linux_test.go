package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder of npx that an interrupted install has left broken is named, and removed on request.
func TestDoctorMendsNpx(t *testing.T) {
	t.Parallel()
	const hash = "0123456789abcdef"
	cache := t.TempDir()
	folder := filepath.Join(cache, "_npx", hash)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	npx, _ := writeRunner(t, `#!/bin/sh
if [ -e "$npm_config_cache/_npx/`+hash+`" ]; then
  echo "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from $npm_config_cache/_npx/`+hash+`/node_modules/x/index.js" >&2
  exit 1
fi
exec "$@"
`)
	// The runner starts the test's server as soon as the folder is gone.
	command := append([]string{"-e", "npm_config_cache=" + cache, "--", npx}, withTestServer(t)[1:]...)
	out := runDowel(t, "", append([]string{"doctor"}, command...)...)
	if out.code == 0 || !strings.Contains(out.stdout, "npx's folder "+hash+" is broken") || !strings.Contains(out.stdout, "--fix") {
		t.Errorf("exit code %d: %s%s", out.code, out.stdout, out.stderr)
	}
	out = runDowel(t, "", append([]string{"doctor", "--fix"}, command...)...)
	if out.code != 0 || !strings.Contains(out.stdout, folder+" is removed") {
		t.Errorf("exit code %d: %s%s", out.code, out.stdout, out.stderr)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("the folder is still there")
	}
}
