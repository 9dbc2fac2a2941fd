package oauth

import (
	"crypto/rand"
	"strconv"
	"strings"
	"time"
)

// NewLoginID returns the id of a login that is made now. It has the time, because the other times
// of a record change with each refresh.
func NewLoginID() string {
	return strconv.FormatInt(time.Now().UnixMilli(), 36) + "-" + rand.Text()
}

// LoginTime returns when the login with an id was made. Ids of older versions do not say it.
func LoginTime(id string) (made time.Time, ok bool) {
	text, random, isTimed := strings.Cut(id, "-")
	ms, err := strconv.ParseInt(text, 36, 64)
	if !isTimed || random == "" || err != nil {
		return time.Time{}, false
	}
	return time.UnixMilli(ms), true
}
