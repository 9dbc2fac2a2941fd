package github

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/google/go-github/v88/github"
)

func (s *Server) addTools(readOnly bool) {
	reads := &mcp.ToolAnnotations{ReadOnlyHint: new(true), OpenWorldHint: new(true)}
	writes := &mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(true)}
	server.Tool(s.Server, "list_issues", "Lists issues of a repository, newest first, one page at a time.", s.listIssues,
		server.ToolOptions{Title: "List issues", Annotations: reads})
	server.Tool(s.Server, "read_issue", "Returns an issue with its first 100 comments.", s.readIssue,
		server.ToolOptions{Title: "Read an issue", Annotations: reads})
	server.Tool(s.Server, "read_file", "Returns a text file of a repository.", s.readFile,
		server.ToolOptions{Title: "Read a file", Annotations: reads})
	if readOnly {
		return
	}
	server.Tool(s.Server, "create_issue", "Creates an issue.", s.createIssue,
		server.ToolOptions{Title: "Create an issue", Annotations: writes})
	server.Tool(s.Server, "comment_issue", "Adds a comment to an issue.", s.commentIssue,
		server.ToolOptions{Title: "Comment on an issue", Annotations: writes})
}

type repoIn struct {
	Owner string `json:"owner" doc:"The user or organization" pattern:"^[A-Za-z0-9][A-Za-z0-9-]*$" maxLength:"100"`
	Repo  string `json:"repo" doc:"The name of the repository" pattern:"^[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$" maxLength:"100"`
}

// Issue is an issue of a repository.
type Issue struct {
	Number   int       `json:"number"`
	Title    string    `json:"title"`
	State    string    `json:"state"`
	Author   string    `json:"author"`
	Created  time.Time `json:"created"`
	URL      string    `json:"url"`
	Labels   []string  `json:"labels"`
	Body     string    `json:"body,omitzero"`
	Comments []Comment `json:"comments"`
}

// Comment is a comment on an issue.
type Comment struct {
	Author  string    `json:"author"`
	Created time.Time `json:"created"`
	Body    string    `json:"body"`
}

func newIssue(i *github.Issue) Issue {
	issue := Issue{
		Number: i.GetNumber(), Title: i.GetTitle(), State: i.GetState(), Author: i.GetUser().GetLogin(),
		Created: i.GetCreatedAt().Time, URL: i.GetHTMLURL(),
	}
	for _, label := range i.Labels {
		issue.Labels = append(issue.Labels, label.GetName())
	}
	return issue
}

type listIn struct {
	repoIn
	State string `json:"state,omitzero" enum:"open,closed,all" default:"open"`
	Page  int    `json:"page,omitzero" doc:"The number of the page" minimum:"1" default:"1"`
}

// Page is a page of issues.
type Page struct {
	Issues []Issue `json:"issues" doc:"The issues, without their bodies and comments"`
	Next   int     `json:"next" doc:"The number of the next page, or 0 after the last"`
}

func (s *Server) listIssues(ctx context.Context, in listIn) (out Page, err error) {
	issues, response, err := s.api.Issues.ListByRepo(ctx, in.Owner, in.Repo, &github.IssueListByRepoOptions{
		State: in.State, ListOptions: github.ListOptions{Page: in.Page, PerPage: 30},
	})
	if err != nil {
		return out, explainError(err)
	}
	for _, issue := range issues {
		if !issue.IsPullRequest() {
			out.Issues = append(out.Issues, newIssue(issue))
		}
	}
	out.Next = response.NextPage
	return out, nil
}

type issueIn struct {
	repoIn
	Number int `json:"number" minimum:"1"`
}

func (s *Server) readIssue(ctx context.Context, in issueIn) (out Issue, err error) {
	issue, _, err := s.api.Issues.Get(ctx, in.Owner, in.Repo, in.Number)
	if err != nil {
		return out, explainError(err)
	}
	out = newIssue(issue)
	out.Body = issue.GetBody()
	comments, _, err := s.api.Issues.ListComments(ctx, in.Owner, in.Repo, in.Number,
		&github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 100}})
	for _, c := range comments {
		out.Comments = append(out.Comments, Comment{c.GetUser().GetLogin(), c.GetCreatedAt().Time, c.GetBody()})
	}
	return out, explainError(err)
}

type createIn struct {
	repoIn
	Title  string   `json:"title" minLength:"1" maxLength:"256"`
	Body   string   `json:"body,omitzero" doc:"Markdown" maxLength:"65536"`
	Labels []string `json:"labels,omitzero" maxItems:"100"`
}

func (s *Server) createIssue(ctx context.Context, in createIn) (Issue, error) {
	request := &github.IssueRequest{Title: &in.Title, Body: &in.Body}
	if len(in.Labels) > 0 {
		request.Labels = &in.Labels
	}
	issue, _, err := s.api.Issues.Create(ctx, in.Owner, in.Repo, request)
	if err != nil {
		return Issue{}, explainError(err)
	}
	return newIssue(issue), nil
}

type commentIn struct {
	issueIn
	Body string `json:"body" doc:"Markdown" minLength:"1" maxLength:"65536"`
}

func (s *Server) commentIssue(ctx context.Context, in commentIn) (string, error) {
	comment, _, err := s.api.Issues.CreateComment(ctx, in.Owner, in.Repo, in.Number, &github.IssueComment{Body: &in.Body})
	if err != nil {
		return "", explainError(err)
	}
	return "added the comment " + comment.GetHTMLURL(), nil
}

type fileIn struct {
	repoIn
	Path string `json:"path" doc:"The path in the repository, such as docs/README.md" minLength:"1" maxLength:"4096"`
	Ref  string `json:"ref,omitzero" doc:"A branch, tag or commit; the default is the default branch" maxLength:"256"`
}

func (s *Server) readFile(ctx context.Context, in fileIn) (string, error) {
	content, err := s.getFile(ctx, in)
	if err != nil {
		return "", explainError(err)
	}
	if !utf8.ValidString(content) {
		return "", errors.New(in.Path + " is not text")
	}
	return content, nil
}

// errFolder reports that a path leads to a folder.
var errFolder = errors.New("name a file")

// getFile returns the bytes of a file.
func (s *Server) getFile(ctx context.Context, in fileIn) (string, error) {
	file, folder, _, err := s.api.Repositories.GetContents(ctx, in.Owner, in.Repo, in.Path, &github.RepositoryContentGetOptions{Ref: in.Ref})
	switch {
	case err != nil:
		return "", err
	case folder != nil:
		return "", fmt.Errorf("%s is a folder with %d entries: %w", in.Path, len(folder), errFolder)
	case file.GetType() != "file" || file.GetEncoding() == "none":
		return "", fmt.Errorf("%s cannot be shown: it is a %s of %d bytes", in.Path, file.GetType(), file.GetSize())
	}
	return file.GetContent()
}
