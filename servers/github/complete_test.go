package github

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// repoAPI answers the requests of completion, and notes them.
type repoAPI struct {
	mu          sync.Mutex
	requests    []string
	isUsedUp    bool // the rate limit
	isForbidden bool // user/repos
	ownsMany    bool
}

func (a *repoAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	request := strings.ToLower(strings.TrimPrefix(r.URL.Path, "/api/v3/")) // as GitHub, which ignores case
	if query := r.URL.Query().Get("q"); query != "" {
		request += " " + query
	}
	a.requests = append(a.requests, request)
	if a.isUsedUp {
		w.Header().Set("X-RateLimit-Limit", "60")
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Reset", "4102444800")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"message":"API rate limit exceeded"}`)
		return
	}
	var many []string // a page that may not be the last
	for i := range pageSize {
		many = append(many, fmt.Sprintf("big/repo-%d", i))
	}
	switch request {
	case "user/repos":
		if a.isForbidden {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"message":"Resource not accessible by integration"}`)
			return
		}
		if a.ownsMany {
			fmt.Fprint(w, reposJSON(many...))
			return
		}
		fmt.Fprint(w, reposJSON("ada/engine", "work/secret", "ada/notes"))
	case "users/ada/repos":
		fmt.Fprint(w, reposJSON("ada/notes", "ada/public"))
	case "users/big/repos":
		fmt.Fprint(w, reposJSON(many...))
	case "search/users zeb in:login":
		fmt.Fprint(w, `{"items":[{"login":"zebra"},{"login":"the-zebra"},{"login":"unrelated"}]}`)
	case "search/repositories secret in:name fork:true user:ada":
		fmt.Fprint(w, `{"items":`+reposJSON("ada/secret-old")+`}`)
	case "search/repositories old in:name fork:true user:big":
		fmt.Fprint(w, `{"items":`+reposJSON("big/older", "other/old")+`}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"message":"Not Found"}`)
	}
}

func reposJSON(names ...string) string {
	var all []string
	for _, name := range names {
		owner, repo, _ := strings.Cut(name, "/")
		all = append(all, fmt.Sprintf(`{"name":%q,"owner":{"login":%q}}`, repo, owner))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// takeRequests returns the requests since the last call.
func (a *repoAPI) takeRequests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.requests
	a.requests = nil
	return taken
}

func complete(t *testing.T, c *client.Client, variable, typed string, settled map[string]string) (*mcp.Completion, error) {
	t.Helper()
	return c.Complete(t.Context(), mcp.ResourceRef("github:///{owner}/{repo}/{+path}"), variable, typed, settled)
}

// Owners and repositories are completed with one request for each question that is new.
func TestCompletion(t *testing.T) {
	api := &repoAPI{}
	web := httptest.NewServer(api)
	defer web.Close()
	c := dial(t, Options{URL: web.URL + "/api/v3", Token: "secret"}, mcp.Revisions()[0])
	ofAda, ofBig, ofNobody := map[string]string{"owner": "Ada"}, map[string]string{"owner": "big"}, map[string]string{"owner": "nobody"}
	for _, step := range []struct {
		variable, typed string
		settled         map[string]string
		want            []string
		requests        []string
	}{
		{"owner", "", nil, []string{"ada", "work"}, []string{"user/repos"}},
		{"owner", "WO", nil, []string{"work"}, nil},
		{"owner", "z", nil, nil, nil}, // too short for a search
		{"owner", "zeb", nil, []string{"zebra", "the-zebra"}, []string{"search/users zeb in:login"}},
		{"owner", "Zeb", nil, []string{"zebra", "the-zebra"}, nil},
		{"owner", "zeb org:x", nil, nil, nil}, // would be a word of the query
		{"owner", "NOT", nil, nil, nil},
		{"owner", "AND", nil, nil, nil},
		{"owner", "-zeb", nil, nil, nil},
		{"repo", "n", ofAda, []string{"notes", "engine"}, []string{"users/ada/repos"}},
		{"repo", "", ofAda, []string{"engine", "notes", "public"}, nil},
		{"repo", "absent", ofAda, nil, nil}, // the page was the last one
		{"repo", "-99", ofBig, []string{"repo-99"}, []string{"users/big/repos"}},
		{"repo", "old", ofBig, []string{"older"}, []string{"search/repositories old in:name fork:true user:big"}},
		{"repo", "x", ofNobody, nil, []string{"users/nobody/repos"}},
		{"repo", "xy", ofNobody, nil, nil},
		{"repo", "x", map[string]string{"owner": "../x"}, nil, nil},
		{"repo", "x", nil, nil, nil},
	} {
		found, err := complete(t, c, step.variable, step.typed, step.settled)
		requests := api.takeRequests()
		if err != nil || !slices.Equal(found.Values, step.want) || !slices.Equal(requests, step.requests) {
			t.Errorf("%s %q of %v: %v, %v, with the requests %q; want %q with %q", step.variable, step.typed, step.settled, found, err, requests, step.want, step.requests)
		}
	}
}

// The token of a workflow belongs to no user and may not list own repositories.
func TestCompletionOfInstallation(t *testing.T) {
	api := &repoAPI{isForbidden: true}
	web := httptest.NewServer(api)
	defer web.Close()
	c := dial(t, Options{URL: web.URL + "/api/v3", Token: "secret"}, mcp.Revisions()[0])
	for typed, want := range map[string][]string{"p": {"public"}, "n": {"notes"}} {
		found, err := complete(t, c, "repo", typed, map[string]string{"owner": "ada"})
		if err != nil || len(found.Values) == 0 || found.Values[0] != want[0] {
			t.Errorf("%s: %v, %v", typed, found, err)
		}
	}
	if requests := api.takeRequests(); !slices.Equal(requests, []string{"user/repos", "users/ada/repos"}) {
		t.Errorf("the requests are %q", requests)
	}
}

// A repository that is not on the first page of the user's repositories is searched.
func TestCompletionOfManyOwn(t *testing.T) {
	web := httptest.NewServer(&repoAPI{ownsMany: true})
	defer web.Close()
	c := dial(t, Options{URL: web.URL + "/api/v3", Token: "secret"}, mcp.Revisions()[0])
	found, err := complete(t, c, "repo", "secret", map[string]string{"owner": "ada"})
	if err != nil || !slices.Equal(found.Values, []string{"secret-old"}) {
		t.Errorf("%v, %v", found, err)
	}
}

// Without a token, owners are searched.
func TestCompletionWithoutToken(t *testing.T) {
	api := &repoAPI{}
	web := httptest.NewServer(api)
	defer web.Close()
	c := dial(t, Options{URL: web.URL + "/api/v3"}, mcp.Revisions()[0])
	found, err := complete(t, c, "owner", "zeb", nil)
	if err != nil || !slices.Equal(found.Values, []string{"zebra", "the-zebra"}) {
		t.Errorf("%v, %v", found, err)
	}
	if requests := api.takeRequests(); len(requests) != 1 {
		t.Errorf("the requests are %q", requests)
	}
}

// A client reads that the rate limit is used up, and further keys make no requests.
func TestCompletionAtTheLimit(t *testing.T) {
	api := &repoAPI{isUsedUp: true}
	web := httptest.NewServer(api)
	defer web.Close()
	c := dial(t, Options{URL: web.URL + "/api/v3", Token: "secret"}, mcp.Revisions()[0])
	const want = "rate limit is used up until 2100-01-01"
	for _, variable := range []string{"owner", "repo", "path"} {
		_, err := complete(t, c, variable, "x", map[string]string{"owner": "o", "repo": "r"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", variable, err, want)
		}
	}
	if requests := api.takeRequests(); len(requests) != 1 {
		t.Errorf("the requests are %q, want one", requests)
	}
	if _, err := c.ReadResource(t.Context(), "github:///o/r/x"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("reading: %v, want %q", err, want)
	}
}

// Answers expire, and their number is bounded.
func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a answerCache
		fetched := 0
		ask := func(key string) {
			t.Helper()
			if got, err := a.get(key, func() ([]string, error) { fetched++; return []string{key}, nil }); err != nil || !slices.Equal(got, []string{key}) {
				t.Errorf("%q, %v", got, err)
			}
		}
		ask("a")
		ask("a")
		time.Sleep(answersLast)
		ask("a")
		if fetched != 2 {
			t.Errorf("fetched %d times, want 2", fetched)
		}
		for i := range 3 * maxAnswers {
			ask(fmt.Sprint(i))
			if len(a.all) > maxAnswers {
				t.Fatalf("%d answers are kept", len(a.all))
			}
		}
	})
}
