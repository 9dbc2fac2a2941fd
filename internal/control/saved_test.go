package control_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/savedcalls"
)

// projectController is a running dowel in the folder of a project.
type projectController struct {
	controller
	folder string
}

func (c *projectController) Status() control.Status { return control.Status{Folder: c.folder} }

// The audit log has each change of the saved calls, also one that failed.
func TestSavedCallsAreAudited(t *testing.T) {
	t.Parallel()
	h := hub.New(nil)
	defer h.Close()
	trail := control.NewAuditTrail("")
	trail.Log = audit.NewLog(trail, audit.Options{})
	folder := t.TempDir()
	calls := control.NewCalls(t.Context(), h, nil) // none is made
	t.Cleanup(func() { _ = calls.Close() })
	api := control.ConsoleAPI(control.Running{Life: t.Context(), Controller: &projectController{controller{h, nil}, folder}, Hub: h, Calls: calls, Audit: trail})
	askAPI[map[string]string](t, api, "POST", "/v1/saved", `{"name":"todo","server":"files","tool":"search","arguments":"{}"}`)
	if _, err := os.Stat(filepath.Join(folder, savedcalls.FileName)); err != nil {
		t.Error(err)
	}
	for range 2 {
		askAPI[map[string]string](t, api, "POST", "/v1/saved/remove", `{"name":"todo"}`)
	}
	page := askAPI[control.AuditPage](t, api, "GET", "/v1/audit", "")
	if len(page.Records) != 3 || page.Records[0].Method != "saved/write" || page.Records[0].Name != "todo" || page.Records[0].Client != "console" || page.Records[1].Outcome != "ok" || page.Records[2].Method != "saved/remove" || page.Records[2].Outcome != "error" {
		t.Errorf("%+v", page)
	}
}

// Arguments with a secret are saved only after the user has seen that, in a file for the user
// alone.
func TestSavedSecrets(t *testing.T) {
	t.Parallel()
	h := hub.New(nil)
	defer h.Close()
	folder := t.TempDir()
	calls := control.NewCalls(t.Context(), h, nil) // none is made
	t.Cleanup(func() { _ = calls.Close() })
	api := control.ConsoleAPI(control.Running{Life: t.Context(), Controller: &projectController{controller{h, nil}, folder}, Hub: h, Calls: calls})
	h.Apply([]hub.Definition{{Name: "git", Target: everything.New(), Mask: func(text string) string { return strings.ReplaceAll(text, "hunter2", "****") }}}, "the test begins")
	for _, secret := range []string{"hunter2", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"} {
		body := `{"name":"log in","server":"git","tool":"login","arguments":"{\"token\":\"` + secret + `\"}"`
		if got := askAPI[map[string]string](t, api, "POST", "/v1/saved", body+"}"); !strings.Contains(got["masked"], "****") || strings.Contains(got["masked"], secret) {
			t.Errorf("%v", got)
		}
		if all, err := savedcalls.Read(folder); err != nil || len(all) != 0 {
			t.Errorf("%v, %v", all, err)
		}
		if got := askAPI[map[string]string](t, api, "POST", "/v1/saved", body+`,"withSecrets":true}`); len(got) != 0 {
			t.Errorf("%v", got)
		}
		c, err := savedcalls.Find(folder, "log in")
		if err != nil || !strings.Contains(string(c.Arguments), secret) {
			t.Errorf("%+v, %v", c, err)
		}
		if info, err := os.Stat(filepath.Join(folder, savedcalls.FileName)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		if err := savedcalls.Remove(folder, "log in"); err != nil {
			t.Error(err)
		}
	}
}
