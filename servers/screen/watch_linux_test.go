package screen

import (
	"context"
	"image"
	"image/color"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
)

var watched = mcp.SubscriptionFilter{ResourceSubscriptions: []string{URI}}

// Subscribers hear of a screen that changes. It is looked at while there are subscribers only.
func TestScreenChanges(t *testing.T) {
	for _, revision := range []mcp.Revision{mcp.Revisions()[0], mcp.Revision20251125} {
		synctest.Test(t, func(t *testing.T) {
			var shade, looks, heard atomic.Int64
			capture := func(context.Context) (image.Image, error) {
				looks.Add(1)
				picture := image.NewNRGBA(image.Rect(0, 0, 4, 4))
				picture.Set(3, 3, color.Gray{uint8(shade.Load())})
				return picture, nil
			}
			c, _ := dial(t, Options{Allow: true, Capture: capture}, revision, "")
			want := func(wantLooks, wantHeard int64) {
				t.Helper()
				if looks.Load() != wantLooks || heard.Load() != wantHeard {
					t.Errorf("%s: %d looks and %d changes, want %d and %d", revision, looks.Load(), heard.Load(), wantLooks, wantHeard)
				}
				looks.Store(0)
				heard.Store(0)
			}
			pass := func(d time.Duration) {
				time.Sleep(d)
				synctest.Wait()
			}
			pass(time.Hour)
			want(0, 0)
			watch, err := c.OnChange(t.Context(), watched, func(change client.Change, _ error) {
				if change.URI == URI {
					heard.Add(1)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			pass(3 * DefaultPoll)
			want(4, 0)
			shade.Store(9)
			pass(2 * DefaultPoll)
			want(2, 1)
			watch.Close()
			shade.Store(200)
			pass(time.Hour)
			want(0, 0)
		})
	}
}

// A window that comes is a change of a real screen.
func TestWindowIsAChange(t *testing.T) {
	t.Setenv("WAYLAND_DISPLAY", "")
	display := startScreen(t, "320x200x24")
	t.Setenv("DISPLAY", display)
	c, _ := dial(t, Options{Allow: true, Poll: 10 * time.Millisecond}, mcp.Revisions()[0], "")
	var heard atomic.Bool
	watch, err := c.OnChange(t.Context(), watched, func(change client.Change, _ error) {
		if change.URI == URI {
			heard.Store(true)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	drawWindow(t, display)
	polltest.Until(t, "the notice of a change", heard.Load)
}

// The screen is not looked at for a subscription if each picture needs the user's consent.
func TestNoChangesWithoutConsent(t *testing.T) {
	for _, revision := range []mcp.Revision{mcp.Revisions()[0], mcp.Revision20251125} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := dial(t, Options{Capture: func(context.Context) (image.Image, error) {
				t.Error("a picture was taken")
				return image.NewRGBA(image.Rect(0, 0, 1, 1)), nil
			}}, revision, mcp.ElicitAccept)
			if _, err := c.OnChange(t.Context(), watched, func(client.Change, error) {}); err == nil {
				t.Errorf("%s: the subscription is accepted", revision)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
		})
	}
}

// A picture of another size or with another pixel has another digest, whatever its format.
func TestDigests(t *testing.T) {
	whole := image.NewRGBA(image.Rect(0, 0, 4, 2))
	known := digestPicture(whole)
	other := image.NewNRGBA(whole.Rect)
	if got := digestPicture(image.NewRGBA(image.Rect(0, 0, 2, 4))); got == known {
		t.Error("the size does not count")
	}
	other.Set(1, 1, color.NRGBA{1, 2, 3, 255})
	if digestPicture(other) == known {
		t.Error("a pixel does not count")
	}
	whole.Set(1, 1, color.NRGBA{1, 2, 3, 255})
	if digestPicture(whole) != digestPicture(other) {
		t.Error("the format counts")
	}
}
