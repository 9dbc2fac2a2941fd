package data

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
)

// Clients hear of files that come and change. The files change again and again, because a change
// before the server's first look is not one.
func TestFileChanges(t *testing.T) {
	folder := t.TempDir()
	c := dial(t, Options{Roots: []string{folder}, Poll: 10 * time.Millisecond}, map[string]string{"sales.csv": salesCSV})
	const sales = "data:///sales.csv"
	var listChanged, updated atomic.Bool
	filter := mcp.SubscriptionFilter{ResourcesListChanged: true, ResourceSubscriptions: []string{sales}}
	watch, err := c.OnChange(t.Context(), filter, func(change client.Change, _ error) {
		switch {
		case change.URI == sales:
			updated.Store(true)
		case change.Method == mcp.NotificationResourcesChanged:
			listChanged.Store(true)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	changes := 0
	polltest.Until(t, "a change of the list and one of the file", func() bool {
		changes++
		text := salesCSV
		for range changes {
			text += "Oslo,1,2,3\n"
		}
		for _, name := range []string{"sales.csv", fmt.Sprintf("new-%d.csv", changes)} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return listChanged.Load() && updated.Load()
	})
}
