package files

import (
	"context"
	"encoding/json"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// watchSubscriptions is a middleware that watches files while a client is subscribed to them. It
// covers legacy subscriptions too, because the transport turns them into listen requests.
func (s *Server) watchSubscriptions(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		if req.Method != mcp.MethodListen {
			return next.ServeMCP(ctx, req)
		}
		var p mcp.ListenParams
		if mcp.Decode(req.Params, &p) != nil {
			return next.ServeMCP(ctx, req) // the server reports the error
		}
		// The watch begins before the server acknowledges the subscription, so no change is missed.
		followed, agreed := s.watchFor(p.Notifications)
		defer s.watcher.releaseTargets(followed)
		req, err := narrowRequest(req, p.Notifications, agreed)
		if err != nil {
			return nil, err
		}
		return next.ServeMCP(ctx, req)
	})
}

// watchFor starts to watch the files and lists that a filter asks for. It returns the watched
// targets, which the caller must release, and the watched URIs. It skips URIs outside the roots and
// URIs beyond MaxWatched.
func (s *Server) watchFor(f mcp.SubscriptionFilter) (followed []target, agreed []string) {
	if f.ResourcesListChanged {
		for _, r := range s.roots {
			if t := (target{place: place{r, "."}}); s.watcher.watchTarget(t) {
				followed = append(followed, t)
			}
		}
	}
	for _, uri := range f.ResourceSubscriptions {
		path, ok := pathOf(uri)
		if !ok {
			continue
		}
		p, ok := s.roots.findPlace(path)
		if !ok {
			continue
		}
		if t := (target{p, uri}); s.watcher.watchTarget(t) {
			followed, agreed = append(followed, t), append(agreed, uri)
		}
	}
	return followed, agreed
}

// narrowRequest returns the request with the agreed URIs only, so that the server does not
// acknowledge others.
func narrowRequest(req *mcp.Request, f mcp.SubscriptionFilter, agreed []string) (*mcp.Request, error) {
	if len(agreed) == len(f.ResourceSubscriptions) {
		return req, nil
	}
	var params map[string]json.RawMessage
	if err := mcp.Decode(req.Params, &params); err != nil {
		return nil, err
	}
	f.ResourceSubscriptions = agreed
	var err error
	if params["notifications"], err = mcp.Encode(&f); err != nil {
		return nil, err
	}
	changed := *req
	if changed.Params, err = mcp.Encode(params); err != nil {
		return nil, err
	}
	return &changed, nil
}

// notifyChange tells the subscribed clients about a change.
func (s *Server) notifyChange(t target) {
	if t.uri == "" {
		s.ListChanged(server.KindResource)
		return
	}
	s.Updated(t.uri)
}
