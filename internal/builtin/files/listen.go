package files

import (
	"context"
	"encoding/json"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// watchSubscriptions has files watched as long as a client listens to them. A legacy subscription
// is a request to listen too, which the transport makes.
func (s *Server) watchSubscriptions(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		if req.Method != mcp.MethodListen {
			return next.ServeMCP(ctx, req)
		}
		var p mcp.ListenParams
		if mcp.Decode(req.Params, &p) != nil {
			return next.ServeMCP(ctx, req) // it reports the error
		}
		// Watched from before the server acknowledges: then no change is missed.
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
// targets, and the URIs among them. It skips URIs outside the roots and URIs beyond the limit.
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

// narrowRequest returns the request with the URIs that are agreed to, so that the acknowledgement
// does not promise more.
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
