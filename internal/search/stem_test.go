package search

import (
	"strings"
	"testing"
)

func TestStemJoins(t *testing.T) {
	for _, words := range []string{
		"create creates created creating creation",
		"delete deletes deleted deleting deletion",
		"configure configures configured configuration configurations",
		"deploy deploys deployed deploying deployment deployments",
		"cancel cancelled canceled cancels cancelling",
		"query queries queried querying",
		"copy copies copied copying",
		"run runs running ran",
		"repository repositories",
		"branch branches",
		"box boxes",
		"cache caches cached caching",
		"page pages",
		"issue issues",
		"status statuses",
		"access accesses accessed accessing",
		"process processes processed processing",
		"database databases",
		"api apis",
		"pr prs",
		"schema schemas",
		"validate validates validated validation",
		"document documents documentation documented",
		"compress compresses compressed compression",
		"annotate annotation annotations",
		"schedule scheduled scheduling",
		"setting settings",
		"person people",
		"recent recently",
		"attach attachment attachments",
		"add adds added adding",
		"call calls called calling",
		"authorize authorized authorization",
		"embed embeds embedded embedding",
	} {
		all := strings.Fields(words)
		for _, w := range all[1:] {
			if stem(w) != stem(all[0]) {
				t.Errorf("%s becomes %q, %s %q", w, stem(w), all[0], stem(all[0]))
			}
		}
	}
}

func TestStemKeepsApart(t *testing.T) {
	for _, words := range []string{
		"file fill", "form format", "comment common", "set setting", "thing th", "string str", "press pres", "member membership",
		"organ organization", "note notion", "option opt", "action act", "reply rep", "status state", "need ned", "news new",
		"process procure", "user us",
	} {
		pair := strings.Fields(words)
		if stem(pair[0]) == stem(pair[1]) {
			t.Errorf("%s and %s both become %q", pair[0], pair[1], stem(pair[0]))
		}
	}
}

func TestStemLeavesAlone(t *testing.T) {
	for _, w := range []string{"", "a", "is", "s3", "grüße", "问题", "kubernetes", "redis", "everything"} {
		if stem(w) != w {
			t.Errorf("%q becomes %q", w, stem(w))
		}
	}
}
