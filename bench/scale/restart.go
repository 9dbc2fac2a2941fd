//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/taskstore"
)

// measureRestart stores tasks on the disk, as one dowel without a cluster does, and reads them
// again.
func measureRestart(ctx context.Context, s *setting) (string, error) {
	var text strings.Builder
	text.WriteString("### Tasks on the disk after a restart\n\n| tasks of 1 KiB that wait for an answer | stored in | the first client gets its own | every client has got its own |\n|---|---|---|---|\n")
	for _, size := range []int{1000, 10_000, 100_000} {
		n := max(int(float64(size)*s.factor), 10)
		folder, err := os.MkdirTemp(s.folder, "tasks-")
		if err != nil {
			return "", err
		}
		stored, err := storeTasks(ctx, folder, n)
		if err != nil {
			return "", err
		}
		first, all, err := readTasks(ctx, folder, n)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "| %d | %s | %s | %s |\n", n, timeText(stored), timeText(first), timeText(all))
	}
	return text.String(), nil
}

func storeTasks(ctx context.Context, folder string, n int) (took time.Duration, err error) {
	store := taskstore.OnDisk(folder)
	defer func() { err = errors.Join(err, store.Close()) }()
	params, err := json.Marshal(string(make([]byte, 128))) // each zero byte becomes six
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	err = spread(n, 64, func(i int) error {
		now := time.Now()
		return store.Create(ctx, &tasks.Record{ID: rand.Text(), Owner: tokenOf(i), Tool: "t", Status: tasks.InputRequired,
			Created: now, Updated: now, TTL: time.Hour, Params: params}, 0)
	})
	return time.Since(begun), err
}

// readTasks starts the store again and lists the tasks of every client. first is the time until the
// first client has its own: from then on the store serves every request.
func readTasks(ctx context.Context, folder string, n int) (first, all time.Duration, err error) {
	begun := time.Now()
	store := taskstore.OnDisk(folder)
	defer func() { err = errors.Join(err, store.Close()) }()
	total := 0
	for i := range principals {
		own, err := store.List(ctx, tokenOf(i))
		if err != nil {
			return 0, 0, err
		}
		total += len(own)
		if i == 0 {
			first = time.Since(begun)
		}
	}
	if total != n {
		return 0, 0, fmt.Errorf("%d of %d tasks are there", total, n)
	}
	return first, time.Since(begun), nil
}
