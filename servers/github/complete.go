package github

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/server"
	"github.com/google/go-github/v88/github"
)

// Completion asks the API for one page of repositories or search results, and keeps the answers.
const (
	pageSize    = 100
	leastTyped  = 2   // characters of a search
	maxAnswers  = 200 // kept at the same time
	answersLast = 5 * time.Minute
)

// completeOwner suggests the owners of the user's repositories. If none fits, it searches users and
// organizations.
func (s *Server) completeOwner(ctx context.Context, typed string, settled map[string]string) ([]string, error) {
	var owners []string
	own, err := s.listOwnRepos(ctx)
	if err != nil {
		return nil, clientError(err)
	}
	for _, name := range own {
		owner, _, _ := strings.Cut(name, "/")
		if !slices.Contains(owners, owner) {
			owners = append(owners, owner)
		}
	}
	found, err := server.CompleteFrom(owners...)(ctx, typed, settled)
	if err != nil || len(found) > 0 || !isSearchable(typed) {
		return found, err
	}
	found, err = s.answers.get("users "+strings.ToLower(typed), func() ([]string, error) {
		result, _, err := s.api.Search.Users(ctx, typed+" in:login", &github.SearchOptions{ListOptions: github.ListOptions{PerPage: pageSize}})
		if err != nil {
			return nil, err
		}
		var logins []string
		for _, user := range result.Users {
			logins = append(logins, user.GetLogin())
		}
		return logins, nil
	})
	if err != nil {
		return nil, clientError(err)
	}
	return server.CompleteFrom(found...)(ctx, typed, settled)
}

// completeRepo suggests repositories of the owner: first the user's, then the last changed ones. If
// none fits, it searches the repositories of the owner.
func (s *Server) completeRepo(ctx context.Context, typed string, settled map[string]string) ([]string, error) {
	owner := settled["owner"]
	if !isName(owner) {
		return nil, nil
	}
	own, err := s.listOwnRepos(ctx)
	if err != nil {
		return nil, clientError(err)
	}
	public, err := s.listRepos(ctx, owner)
	if err != nil {
		return nil, clientError(err)
	}
	hasAll := len(own) < pageSize && len(public) < pageSize
	found, err := server.CompleteFrom(reposOf(owner, slices.Concat(own, public))...)(ctx, typed, settled)
	if err != nil || len(found) > 0 || hasAll || !isSearchable(typed) {
		return found, err
	}
	found, err = s.answers.get("repositories "+strings.ToLower(owner+"/"+typed), func() ([]string, error) {
		query := typed + " in:name fork:true user:" + owner
		result, _, err := s.api.Search.Repositories(ctx, query, &github.SearchOptions{ListOptions: github.ListOptions{PerPage: pageSize}})
		if err != nil {
			return nil, err
		}
		return fullNames(result.Repositories), nil
	})
	if err != nil {
		return nil, clientError(err)
	}
	return server.CompleteFrom(reposOf(owner, found)...)(ctx, typed, settled)
}

// completePath suggests the entries of the folder whose path is typed. A folder ends with a slash.
func (s *Server) completePath(ctx context.Context, typed string, settled map[string]string) ([]string, error) {
	owner, repo := settled["owner"], settled["repo"]
	if !isName(owner) || !isName(repo) {
		return nil, nil
	}
	folder := typed[:strings.LastIndexByte(typed, '/')+1]
	paths, err := s.answers.get("folder "+owner+"/"+repo+"/"+folder, func() ([]string, error) {
		_, entries, _, err := s.api.Repositories.GetContents(ctx, owner, repo, strings.TrimSuffix(folder, "/"), nil)
		var paths []string
		for _, entry := range entries {
			path := folder + entry.GetName()
			if entry.GetType() == "dir" {
				path += "/"
			}
			paths = append(paths, path)
		}
		return paths, err
	})
	if err != nil {
		return nil, clientError(err)
	}
	return server.CompleteFrom(paths...)(ctx, typed, settled)
}

// listOwnRepos returns the full names of the repositories that the user of the token works on, as
// OWNER/REPO, the last changed first. It returns none without a
// token, or if the token belongs to no user.
func (s *Server) listOwnRepos(ctx context.Context) ([]string, error) {
	if !s.hasToken {
		return nil, nil
	}
	return s.answers.get("own", func() ([]string, error) {
		repos, _, err := s.api.Repositories.ListByAuthenticatedUser(ctx, &github.RepositoryListByAuthenticatedUserOptions{
			Sort: "pushed", ListOptions: github.ListOptions{PerPage: pageSize},
		})
		if isForbidden(err) {
			return nil, nil
		}
		return fullNames(repos), err
	})
}

// isForbidden reports whether the API answered 403 for another reason than a limit. The token of
// an installation, such as GITHUB_TOKEN of a workflow, belongs to no user.
func isForbidden(err error) bool {
	failed, ok := errors.AsType[*github.ErrorResponse](err)
	return ok && failed.Response.StatusCode == http.StatusForbidden
}

// listRepos returns the full names of an owner's public repositories, the last changed first.
func (s *Server) listRepos(ctx context.Context, owner string) ([]string, error) {
	return s.answers.get("owner "+strings.ToLower(owner), func() ([]string, error) {
		repos, _, err := s.api.Repositories.ListByUser(ctx, owner, &github.RepositoryListByUserOptions{
			Sort: "pushed", ListOptions: github.ListOptions{PerPage: pageSize},
		})
		return fullNames(repos), err
	})
}

func fullNames(repos []*github.Repository) (names []string) {
	for _, repo := range repos {
		names = append(names, repo.GetOwner().GetLogin()+"/"+repo.GetName())
	}
	return names
}

// reposOf returns the names of an owner's repositories, each once.
func reposOf(owner string, all []string) (names []string) {
	for _, name := range all {
		of, repo, _ := strings.Cut(name, "/")
		if strings.EqualFold(of, owner) && !slices.Contains(names, repo) {
			names = append(names, repo)
		}
	}
	return names
}

// isSearchable reports whether a text is allowed in a query of the search: it is no word
// of its language.
func isSearchable(typed string) bool {
	isOperator := slices.Contains([]string{"OR", "AND", "NOT"}, typed)
	return len(typed) >= leastTyped && isName(typed) && !isOperator && typed[0] != '-'
}

// answerCache keeps answers of the API for completion, which asks at each key. The zero value is
// empty.
type answerCache struct {
	mu  sync.Mutex
	all map[string]answer
}

type answer struct {
	values []string
	until  time.Time
}

// get returns a kept answer, or else the answer of fetch. Something that does not exist is an
// answer without values. Other errors are not kept: the client of the API remembers a used up rate
// limit itself.
func (a *answerCache) get(key string, fetch func() ([]string, error)) ([]string, error) {
	if values, ok := a.lookUp(key); ok {
		return values, nil
	}
	values, err := fetch()
	if err != nil && !isNotFound(err) {
		return nil, err
	}
	a.keep(key, values)
	return values, nil
}

func (a *answerCache) lookUp(key string) ([]string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.all[key]
	return found.values, ok && time.Now().Before(found.until)
}

// keep adds an answer. It removes all answers that have expired, and all others if there are
// maxAnswers.
func (a *answerCache) keep(key string, values []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for known, found := range a.all {
		if now.After(found.until) {
			delete(a.all, known)
		}
	}
	if a.all == nil || len(a.all) >= maxAnswers {
		a.all = map[string]answer{}
	}
	a.all[key] = answer{values, now.Add(answersLast)}
}
