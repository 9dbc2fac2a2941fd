package search_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/search"
)

// workshop is a catalog of invented tools.
var workshop = []search.Tool{
	tool("forge", "create_issue", "Open a new issue in a repository", "title", "body"),
	tool("forge", "list_issues", "List the issues of a repository", "state"),
	tool("forge", "delete_issue", "Delete an issue for good"),
	tool("forge", "create_pull_request", "Propose the changes of a branch"),
	tool("forge", "list_repositories", "All repositories of an account"),
	tool("gate", "create_merge_request", "Propose the changes of a branch"),
	tool("gate", "create_issue", "Open a new issue in a project"),
	tool("talk", "talk_post_message", "Post a message to a channel", "channel", "text"),
	tool("disk", "create_directory", "Create a directory, and those above it"),
	tool("disk", "read_text_file", "The content of a file"),
	tool("disk", "getFileInfo", "Size and time of a file"),
	tool("disk", "move", "Move a file to another directory"),
	tool("web", "screenshot", "What the page looks like now"),
	tool("web", "set_colour_scheme", "Emulate light and dark", "scheme"),
	tool("web", "take_heapsnapshot", "All objects in memory"),
	tool("mail", "发送邮件", "发送一封电子邮件"),
	tool("mail", "größe_ändern", "Ändert die Größe eines Bildes"),
}

func tool(server, name, description string, parameters ...string) search.Tool {
	t := search.Tool{Name: server + "__" + name, Server: server, Description: description}
	for _, p := range parameters {
		t.Parameters = append(t.Parameters, search.Parameter{Name: p, Description: "the " + p})
	}
	return t
}

func find(tools []search.Tool, query string, limit int) (names []string) {
	for _, hit := range search.New(tools).Find(query, limit) {
		names = append(names, tools[hit.Tool].Name)
	}
	return names
}

func TestFirst(t *testing.T) {
	for query, want := range map[string]string{
		// words of the tool
		"issues of a repository":          "forge__list_issues",
		"read the text of a file":         "disk__read_text_file",
		"file info":                       "disk__getFileInfo",
		"post messages":                   "talk__talk_post_message",
		"colour":                          "web__set_colour_scheme",
		"opening a new issue with forge":  "forge__create_issue",
		"opening a new issue with gate":   "gate__create_issue",
		"how big is this file, its size?": "disk__getFileInfo",
		// other words
		"make a folder":             "disk__create_directory",
		"remove a ticket":           "forge__delete_issue",
		"show me all repos":         "forge__list_repositories",
		"rename a document":         "disk__move",
		"write to a channel":        "talk__talk_post_message",
		"open a PR on forge":        "forge__create_pull_request",
		"open an MR":                "gate__create_merge_request",
		"what bugs are there":       "forge__list_issues",
		"picture of a website":      "web__screenshot",
		"capture an image of a tab": "web__screenshot",
		// together or apart
		"take a screen shot":   "web__screenshot",
		"heap snapshot":        "web__take_heapsnapshot",
		"readtextfile":         "disk__read_text_file",
		"colourscheme":         "web__set_colour_scheme",
		"get fileInfo":         "disk__getFileInfo",
		"createPullRequestNow": "forge__create_pull_request",
		// beginnings and typing errors
		"dire":               "disk__create_directory",
		"screensh":           "web__screenshot",
		"creat direktory":    "disk__create_directory",
		"list repositorys":   "forge__list_repositories",
		"post mesage":        "talk__talk_post_message",
		"delete isseu":       "forge__delete_issue",
		"list reposiotires":  "forge__list_repositories",
		"a merge requets":    "gate__create_merge_request",
		"delete the the the": "forge__delete_issue",
		// other scripts
		"发送":            "mail__发送邮件",
		"Größe":         "mail__größe_ändern",
		"ÄNDERN größe.": "mail__größe_ändern",
	} {
		if got := find(workshop, query, 3); len(got) == 0 || got[0] != want {
			t.Errorf("%q finds %q, want %s first", query, got, want)
		}
	}
}

func TestNamesComeFirst(t *testing.T) {
	tools := append([]search.Tool{
		// What says more of everything must not come before the tool of that name.
		{Name: "a__create_issue_create_issue", Server: "a", Title: "move create_issue", Description: "create_issue create issue move move"},
		{Name: "z__Create-Issue", Server: "z"},
		{Name: "hashed_7f3a", Server: "long", OwnName: "a_very_long_name"},
	}, workshop...)
	for query, want := range map[string][]string{
		"forge__create_issue": {"forge__create_issue"},
		"forge.create-issue":  {"forge__create_issue"},
		"create_issue":        {"forge__create_issue", "gate__create_issue", "z__Create-Issue"},
		"Create-Issue":        {"z__Create-Issue", "forge__create_issue", "gate__create_issue"},
		"createIssue":         {"forge__create_issue", "gate__create_issue", "z__Create-Issue"},
		"move":                {"disk__move"},
		"MOVE":                {"disk__move"},
		"hashed_7f3a":         {"hashed_7f3a"},
		"a_very_long_name":    {"hashed_7f3a"},
	} {
		got := find(tools, query, len(want))
		if slices.Sort(got[min(1, len(got)):]); !slices.Equal(got[:min(1, len(got))], want[:1]) && query != "create_issue" && query != "createIssue" {
			t.Errorf("%q finds %q, want %q first", query, got, want[0])
		}
		if got, want := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
}

// Of tools that have the same words, the one with the action of the query comes first.
func TestAction(t *testing.T) {
	var tools []search.Tool
	for _, verb := range []string{"create", "delete", "list", "update"} {
		tools = append(tools, tool("shop", verb+"_order", "Orders, to create, delete, list or update"))
	}
	for query, want := range map[string]string{
		"make an order":                        "create",
		"set up an order":                      "create",
		"please forget that order":             "delete",
		"which orders are there":               "list",
		"what orders did the customers create": "list",
		"change an order":                      "update",
	} {
		if got := find(tools, query, 1); !slices.Equal(got, []string{"shop__" + want + "_order"}) {
			t.Errorf("%q finds %q, want %s_order", query, got, want)
		}
	}
}

// A concept and its synonym in one query count once.
func TestRepeated(t *testing.T) {
	tools := []search.Tool{
		tool("a", "picture_frame", "Made of wood"),
		tool("b", "garden", "A photo of it"),
		tool("c", "garden_map", "Made of paper"),
		tool("d", "door", "Made of wood"),
	}
	if got := find(tools, "picture or photo or image of a garden", 1); !slices.Equal(got, []string{"b__garden"}) {
		t.Errorf("found %q, want b__garden", got)
	}
	score := func(query string) float64 { return search.New(tools).Find(query, 1)[0].Score }
	if once, thrice := score("picture"), score("picture, photo, image"); once != thrice {
		t.Errorf("saying it three times is worth %g, once %g", thrice, once)
	}
}

func TestNamedServer(t *testing.T) {
	tools := []search.Tool{tool("data-lake", "read_row", "Read a row"), tool("archive", "read_row", "Read a row"), tool("x", "y", "z")}
	for query, want := range map[string]string{
		"read a row from the archive":   "archive__read_row",
		"read a row from the data lake": "data-lake__read_row",
		"read a row from the DataLake":  "data-lake__read_row",
	} {
		if got := find(tools, query, 1); !slices.Equal(got, []string{want}) {
			t.Errorf("%q finds %q, want %s", query, got, want)
		}
	}
}

func TestFieldsCountInOrder(t *testing.T) {
	tools := []search.Tool{
		{Name: "e", Description: "filler", Parameters: []search.Parameter{{Name: "zebra", Description: "filler"}}},
		{Name: "d", Description: "zebra"},
		{Name: "zebra__c", Server: "zebra", Description: "filler"},
		{Name: "b", Title: "zebra", Description: "filler"},
		{Name: "x__zebra", Server: "x", Description: "filler"},
		{Name: "none", Description: "filler"},
	}
	if got, want := strings.Join(find(tools, "zebras", 0), " "), "x__zebra b zebra__c d e"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

func TestTies(t *testing.T) {
	var tools []search.Tool
	for _, server := range []string{"d", "b", "a", "c", "b"} {
		tools = append(tools, search.Tool{Name: server + "__same", Server: server, Description: "Do it"})
	}
	for _, query := range []string{"same", "it same do", ""} {
		if got, want := fmt.Sprint(find(tools, query, 0)), "[a__same b__same b__same c__same d__same]"; got != want {
			t.Errorf("%q finds %s, want %s", query, got, want)
		}
	}
	hits := search.New(tools).Find("", 0)
	if hits[1].Tool != 1 || hits[2].Tool != 4 {
		t.Errorf("tools of one name are not in their order: %v", hits)
	}
}

func TestEmptyQuery(t *testing.T) {
	all := find(workshop, "", 0)
	if len(all) != len(workshop) || !slices.IsSorted(all) {
		t.Errorf("found %q, want all in the order of their names", all)
	}
	for _, query := range []string{"  \n", "?!", "\xff\xfe"} {
		if got := find(workshop, query, 4); !slices.Equal(got, all[:4]) {
			t.Errorf("%q finds %q, want the first four", query, got)
		}
	}
}

func TestNothingFound(t *testing.T) {
	for _, query := range []string{"xylophone", "qq", "the of and"} {
		if got := find(workshop, query, 5); len(got) > 0 {
			t.Errorf("%q finds %q", query, got)
		}
	}
	if got := search.New(nil).Find("anything", 5); len(got) > 0 {
		t.Errorf("no tools, and %v is found", got)
	}
	if got := search.New(nil).Find("", 5); len(got) > 0 {
		t.Errorf("no tools, and %v is listed", got)
	}
}

func TestLimit(t *testing.T) {
	whole := find(workshop, "create an issue", 0)
	if len(whole) < 4 {
		t.Fatalf("found %q only", whole)
	}
	for _, limit := range []int{1, 2, len(whole), len(whole) + 1, 1 << 30} {
		if got := find(workshop, "create an issue", limit); !slices.Equal(got, whole[:min(limit, len(whole))]) {
			t.Errorf("at most %d: %q of %q", limit, got, whole)
		}
	}
	if got := find(workshop, "create an issue", -1); !slices.Equal(got, whole) {
		t.Errorf("at most -1: %q, want all %q", got, whole)
	}
}

// The order of the words, and whose tools come first, does not change the result.
func TestDeterministic(t *testing.T) {
	index := search.New(workshop)
	first := index.Find("delete or list tickets of a repo", 0)
	for range 20 {
		if again := search.New(workshop).Find("delete or list tickets of a repo", 0); !reflect.DeepEqual(first, again) {
			t.Fatalf("%v, then %v", first, again)
		}
	}
	reversed := slices.Clone(workshop)
	slices.Reverse(reversed)
	if got, want := find(reversed, "delete or list tickets of a repo", 0), find(workshop, "delete or list tickets of a repo", 0); !slices.Equal(got, want) {
		t.Errorf("reversed: %q, want %q", got, want)
	}
}

func TestConcurrent(t *testing.T) {
	index := search.New(workshop)
	want := index.Find("make a folder", 3)
	done := make(chan []search.Hit)
	for range 8 {
		go func() { done <- index.Find("make a folder", 3) }()
	}
	for range 8 {
		if got := <-done; !reflect.DeepEqual(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// What a server or a client sends must neither take long nor crowd out the others.
func TestHostile(t *testing.T) {
	spam := strings.Repeat("create issue delete folder file message ", 20_000)
	tools := append([]search.Tool{
		{Name: "spam__x", Server: "spam", Description: spam, Parameters: []search.Parameter{{Name: "x", Description: spam}, {Name: spam}}},
		{Name: "", Server: ""},
		{Name: "\xff\xfe\x00", Server: "\x00", Title: "\xc3", Description: strings.Repeat("\xe5", 300)},
		{Name: strings.Repeat("longname", 10_000), Server: strings.Repeat("s", 10_000)},
	}, workshop...)
	for query, want := range map[string]string{"make a folder": "disk__create_directory", "delete an issue": "forge__delete_issue"} {
		if got := find(tools, query, 1); len(got) != 1 || got[0] != want {
			t.Errorf("%q finds %.80q, want %s", query, got, want)
		}
	}
	index := search.New(tools)
	for _, query := range []string{spam, strings.Repeat("a", 1<<20), strings.Repeat("é", 1<<20), strings.Repeat("xq zq ", 1<<18),
		strings.Repeat("aB", 1<<18), strings.Repeat("创", 1<<18)} {
		if hits := index.Find(query, 5); len(hits) > 5 {
			t.Errorf("%.20q finds %d tools, want at most 5", query, len(hits))
		}
	}
	if got := index.Find(spam, 1); len(got) != 1 {
		t.Errorf("a long question finds nothing")
	}
}

func FuzzFind(f *testing.F) {
	for _, query := range []string{"", "make a folder", "createPullRequest", "创建 issue", "\xff", "look up up up", "a_b-c.d", "İıſK"} {
		f.Add(query, "name", "A description. More of it.", []byte(`{"name":"n","inputSchema":{"properties":{"a":{"enum":["b"]}}}}`))
	}
	f.Fuzz(func(t *testing.T, query, name, description string, raw []byte) {
		tools := append([]search.Tool{
			{Name: name, Server: "s", Description: description}, search.FromDefinition("s", name, raw), search.FromDefinition(name, "q", raw),
		}, workshop...)
		index := search.New(tools)
		hits := index.Find(query, 0)
		for i, hit := range hits {
			if hit.Tool < 0 || hit.Tool >= len(tools) || i > 0 && (hit.Score > hits[i-1].Score || hit.Score < 0 || hit.Score != hit.Score) {
				t.Fatalf("hit %d is %v after %v", i, hit, hits[max(i-1, 0)])
			}
		}
		if got := index.Find(query, 3); !slices.Equal(got, hits[:min(3, len(hits))]) {
			t.Fatalf("the first three are %v, of all %v", got, hits)
		}
		if named := index.Find(name, 1); name != "" && len(name) < 1000 && strings.ContainsAny(name, "abcdefgh") && tools[named[0].Tool].Name != name {
			t.Fatalf("%q finds %q first", name, tools[named[0].Tool].Name)
		}
	})
}
