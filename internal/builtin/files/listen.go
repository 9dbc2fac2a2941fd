package files

import (
	"context"
	"encoding/json"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// follow has files watched as long as a client listens to them. A legacy subscription is a request to listen too, which the
// transport makes.
func (s *Server) follow(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		if req.Method != mcp.MethodListen {
			return next.ServeMCP(ctx, req)
		}
		var p mcp.ListenParams
		if mcp.Decode(req.Params, &p) != nil {
			return next.ServeMCP(ctx, req) // which says what is wrong
		}
		// Watched from before the server acknowledges: then no change is missed.
		followed, agreed := s.watchFor(p.Notifications)
		defer s.watcher.release(followed)
		req, err := narrowed(req, p.Notifications, agreed)
		if err != nil {
			return nil, err
		}
		return next.ServeMCP(ctx, req)
	})
}

// watchFor begins to watch what a filter asks for, and returns what it was and the URIs among it. Those that are not of the
// roots, and those that are too many, are left out.
func (s *Server) watchFor(f mcp.SubscriptionFilter) (followed []target, agreed []string) {
	if f.ResourcesListChanged {
		for _, r := range s.roots {
			if t := (target{place: place{r, "."}}); s.watcher.retain(t) {
				followed = append(followed, t)
			}
		}
	}
	for _, uri := range f.ResourceSubscriptions {
		path, ok := pathOf(uri)
		if !ok {
			continue
		}
		p, ok := s.roots.find(path)
		if !ok {
			continue
		}
		if t := (target{p, uri}); s.watcher.retain(t) {
			followed, agreed = append(followed, t), append(agreed, uri)
		}
	}
	return followed, agreed
}

// narrowed returns the request with the URIs that are agreed to, so that the acknowledgement does not promise more.
func narrowed(req *mcp.Request, f mcp.SubscriptionFilter, agreed []string) (*mcp.Request, error) {
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

// tell tells those who listen of a change.
func (s *Server) tell(t target) {
	if t.uri == "" {
		s.ListChanged(server.KindResource)
		return
	}
	s.Updated(t.uri)
}
