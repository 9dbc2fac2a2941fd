package files

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"golang.org/x/sys/unix"
)

// Another process repeatedly swaps a folder for a link that leads out, while files in it are read
// and written.
func TestSwappedLinks(t *testing.T) {
	d := newDesk(t, map[string]string{"out/f": "secret", "root/real/f": "inside", "root/x": ""})
	o := newDeskOf(t, nil, Options{Roots: []string{d.path("root")}}, client.Options{})
	d.must(os.Symlink("../out", d.path("root/evil")))
	stop, swapped := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			select {
			case <-stop:
				swapped <- nil
				return
			default:
			}
			err = unix.Renameat2(unix.AT_FDCWD, d.path("root/real"), unix.AT_FDCWD, d.path("root/evil"), unix.RENAME_EXCHANGE)
		}
		swapped <- err
	}()
	var wg sync.WaitGroup
	var met, missed atomic.Int32 // calls that found the link, and the folder
	for tool, in := range map[string]args{
		"read": {"path": "real/f"}, "write": {"path": "real/f", "content": "inside"}, "search": {"query": "secret"}, "list": {"path": "real"},
		"edit": {"path": "real/f", "edits": []args{{"old": "secret", "new": "stolen"}}},
	} {
		wg.Go(func() {
			for range 30 {
				raw, err := json.Marshal(d.resultOf(o.client, tool, in))
				if err != nil {
					t.Error(err)
				}
				if strings.Contains(string(raw), "leads out") {
					met.Add(1)
				} else {
					missed.Add(1)
				}
				if strings.Contains(string(raw), `"text":"secret`) || strings.Contains(string(raw), "f:1:secret") {
					t.Errorf("%s: %s", tool, raw)
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	d.must(<-swapped)
	if met.Load() == 0 || missed.Load() == 0 {
		t.Errorf("of the calls %d met the link and %d the folder: this has tested nothing", met.Load(), missed.Load())
	}
	if d.content("out/f") != "secret" || d.names("out") != "f" {
		t.Errorf("outside: %q, %s", d.content("out/f"), d.names("out"))
	}
}
