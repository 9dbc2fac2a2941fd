package filter

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// newComparison returns a term such as dur:>500ms. Without a sign it means at least.
func newComparison(values []value, parse func(string) (float64, error), read func(*Item) (float64, bool)) (node, error) {
	var all anyOf
	for _, v := range values {
		text, sign := v.text, ">="
		for _, s := range []string{">=", "<=", ">", "<"} {
			if rest, ok := strings.CutPrefix(text, s); ok {
				text, sign = rest, s
				break
			}
		}
		limit, err := parse(text)
		if err != nil {
			return nil, err
		}
		all = append(all, test(func(i *Item) bool {
			n, ok := read(i)
			switch {
			case !ok:
				return false
			case sign == ">":
				return n > limit
			case sign == "<":
				return n < limit
			case sign == "<=":
				return n <= limit
			}
			return n >= limit
		}))
	}
	return all, nil
}

func parseSeconds(text string) (float64, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("dur:%s: want a time such as >500ms, <2s or >1m", text)
	}
	return d.Seconds(), nil
}

// parseSize parses a number of bytes with k or m for 1024 and 1024².
func parseSize(text string) (float64, error) {
	lower := strings.TrimSuffix(strings.ToLower(text), "b")
	factor := 1.0
	switch {
	case strings.HasSuffix(lower, "k"):
		lower, factor = lower[:len(lower)-1], 1<<10
	case strings.HasSuffix(lower, "m"):
		lower, factor = lower[:len(lower)-1], 1<<20
	}
	n, err := strconv.ParseFloat(lower, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("size:%s: want a size such as >10k, <200 or >1m", text)
	}
	return n * factor, nil
}

func secondsOf(i *Item) (float64, bool) {
	if i.Operation != nil && (i.Whole || i.Frame == nil) {
		return i.Operation.Took().Seconds(), true
	}
	return i.Frame.Took.Seconds(), i.Frame.Status != ""
}

func sizeOf(i *Item) (float64, bool) {
	if i.Operation != nil && (i.Whole || i.Frame == nil) {
		return float64(i.Operation.Received + i.Operation.Sent), true
	}
	return float64(i.Frame.Size), true
}

// newTimeTerm returns since:10m, since:14:02, until:2026-11-22T14:02:00Z and the like.
func newTimeTerm(key string, values []value, now time.Time) (node, error) {
	if len(values) != 1 {
		return nil, fmt.Errorf("%s takes one time", key)
	}
	limit, err := parseMoment(values[0].text, now)
	if err != nil {
		return nil, fmt.Errorf("%s:%s: want a time such as 10m, 14:02, 14:02:31 or %s", key, values[0].text, now.Format(time.RFC3339))
	}
	return test(func(i *Item) bool {
		at := time.Time{}
		switch {
		case i.Frame != nil:
			at = i.Frame.Time
		case i.Operation != nil:
			at = i.Operation.Start.Add(i.Operation.Took())
		}
		return at.Before(limit) == (key == "until")
	}), nil
}

// parseMoment parses a time before now, a time of today, or a whole time.
func parseMoment(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.TimeOnly, "15:04"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location()), nil
		}
	}
	return time.Parse(time.RFC3339, text)
}
