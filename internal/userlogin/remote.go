package userlogin

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/timeout"
)

// replicas connects the pages of several replicas. A flow runs at the replica that has begun it:
// its id and the names of its cookies begin with the instance. Another replica passes the requests
// of browsers on, and asks again and again for the answer, because a step of a login takes longer
// than a message between replicas may.
type replicas struct {
	pages    *Pages
	network  replica.Network // nil without replicas
	values   replica.Values
	instance string
	leave    func()
	answers  map[string]*remoteAnswer // of requests for other replicas, by ticket; guarded by Pages.mu
}

// remoteAnswer is the answer to a request of another replica's browser.
type remoteAnswer struct {
	done   chan struct{} // closed when the fields below are set
	status int
	header http.Header
	body   []byte
	cancel context.CancelFunc
}

// remoteMessage is a message between the pages of replicas, and the answer to it.
type remoteMessage struct {
	Kind   string      `json:"kind,omitempty"` // one of the constants below
	Target string      `json:"target,omitempty"`
	Cookie []string    `json:"cookie,omitempty"`
	Ticket string      `json:"ticket,omitempty"`
	State  string      `json:"state,omitempty"`
	Flow   string      `json:"flow,omitempty"`
	Known  bool        `json:"known,omitempty"`
	Failed string      `json:"failed,omitempty"`
	Status int         `json:"status,omitempty"`
	Header http.Header `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
}

const (
	askStep   = "login-step"   // whether a login waits for the redirect with this state
	askFlow   = "login-flow"   // whether a flow is there
	openPage  = "login-open"   // open a page for a browser
	askAnswer = "login-answer" // whether the page is there
)

const (
	instancePrefix = "login-"
	// remotePause is the time between two questions to another replica.
	remotePause = 100 * time.Millisecond
	// answerTimeout bounds a request that is passed on, and how long its answer is kept.
	answerTimeout = time.Minute
	// maxRemoteCookies bounds the replicas that are asked for the login of a browser.
	maxRemoteCookies = 8
)

// join receives the messages of other replicas.
func (s *replicas) join(p *Pages) {
	s.pages, s.leave, s.answers = p, func() {}, map[string]*remoteAnswer{}
	if p.opts.Network == nil || p.opts.Values == nil {
		return
	}
	s.instance = instancePrefix + rand.Text()[:10]
	leave, err := p.opts.Network.Receive(s.instance, s.receive)
	if err != nil {
		p.opts.Logger.Error("logins that begin here cannot be continued at other replicas", "err", err)
		return
	}
	s.network, s.values, s.leave = p.opts.Network, p.opts.Values, leave
}

// newFlowID returns an id that names this instance.
func (s *replicas) newFlowID() string {
	if s.network == nil {
		return rand.Text()
	}
	return s.instance + "-" + rand.Text()
}

// instanceOf returns the instance that an id names, if it is another one.
func (s *replicas) instanceOf(id string) (instance string, ok bool) {
	rest, ok := strings.CutPrefix(id, instancePrefix)
	name, _, isID := strings.Cut(rest, "-")
	if s.network == nil || !ok || !isID || len(name) != 10 || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return "", false
	}
	instance = instancePrefix + name
	return instance, instance != s.instance
}

// sendMessage sends a message to another instance and returns its answer.
func (s *replicas) sendMessage(ctx context.Context, to string, m remoteMessage) (answer remoteMessage, err error) {
	data, err := json.Marshal(m)
	if err != nil {
		return answer, err
	}
	if data, err = s.network.Send(ctx, to, data); err != nil || len(data) == 0 {
		return answer, err
	}
	err = json.Unmarshal(data, &answer)
	return answer, err
}

// receive handles a message of another replica. It implements [replica.Handler].
func (s *replicas) receive(_ context.Context, data []byte) ([]byte, error) {
	var m, answer remoteMessage
	if json.Unmarshal(data, &m) != nil {
		return nil, nil // it is for other parts of the replicas
	}
	p := s.pages
	switch m.Kind {
	case askStep:
		p.mu.Lock()
		answer.Known = p.steps[m.State] != nil
		p.mu.Unlock()
	case askFlow:
		p.mu.Lock()
		answer.Known = p.flows[m.Flow] != nil
		if err, ended := p.ended[m.Flow]; ended && err != nil {
			answer.Failed = err.Error()
		}
		p.mu.Unlock()
	case openPage:
		answer.Ticket = s.openRemote(m)
	case askAnswer:
		p.mu.Lock()
		a := s.answers[m.Ticket]
		p.mu.Unlock()
		if a == nil {
			return nil, errors.New("the request has ended")
		}
		select {
		case <-a.done:
			answer.Status, answer.Header, answer.Body = a.status, a.header, a.body
			s.drop(m.Ticket)
		default:
		}
	default:
		return nil, nil
	}
	return json.Marshal(answer)
}

// openRemote serves a request of another replica's browser and returns the ticket of its answer.
func (s *replicas) openRemote(m remoteMessage) (ticket string) {
	ctx, cancel := context.WithTimeout(s.pages.ctx, answerTimeout)
	a := &remoteAnswer{done: make(chan struct{}), cancel: cancel}
	ticket = rand.Text()
	s.pages.mu.Lock()
	s.answers[ticket] = a
	s.pages.mu.Unlock()
	time.AfterFunc(2*answerTimeout, func() { s.drop(ticket) })
	go func() {
		defer close(a.done)
		w := &recorder{header: http.Header{}, status: http.StatusOK}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.pages.opts.URL+m.Target, http.NoBody)
		if err != nil {
			a.status = http.StatusBadRequest
			return
		}
		r.Header["Cookie"] = m.Cookie
		s.pages.serveHere(w, r)
		a.status, a.header, a.body = w.status, w.header, w.body.Bytes()
	}()
	return ticket
}

func (s *replicas) drop(ticket string) {
	s.pages.mu.Lock()
	defer s.pages.mu.Unlock()
	if a := s.answers[ticket]; a != nil {
		a.cancel()
		delete(s.answers, ticket)
	}
}

// serveRemotely passes a request on to the replica that runs its flow. It returns false if this
// replica runs the flow, or if the flow is unknown.
func (s *replicas) serveRemotely(w http.ResponseWriter, r *http.Request) bool {
	owner, ok := s.ownerOf(r)
	if !ok {
		return false
	}
	answer, err := s.pass(r, owner)
	if err != nil {
		s.pages.opts.Logger.Warn("the page of a login is at a replica that does not answer", "err", err)
		writePage(w, http.StatusBadGateway, "The part of the gateway that began this login has ended. Call the tool again to get another address.")
		return true
	}
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body)
	return true
}

// ownerOf returns the other replica whose flow a request belongs to.
func (s *replicas) ownerOf(r *http.Request) (instance string, ok bool) {
	if s.network == nil {
		return "", false
	}
	if r.URL.Path != CallbackPath {
		return s.instanceOf(strings.TrimPrefix(r.URL.Path, Prefix))
	}
	state := r.URL.Query().Get("state")
	s.pages.mu.Lock()
	isHere := s.pages.steps[state] != nil
	s.pages.mu.Unlock()
	asked := map[string]bool{}
	for _, c := range r.Cookies() {
		id, isFlow := strings.CutPrefix(strings.TrimPrefix(c.Name, "__Host-"), cookiePrefix)
		other, isOther := s.instanceOf(id)
		if isHere || !isFlow || !isOther || asked[other] || len(asked) == maxRemoteCookies {
			continue
		}
		asked[other] = true
		if answer, err := s.sendMessage(r.Context(), other, remoteMessage{Kind: askStep, State: state}); err == nil && answer.Known {
			return other, true
		}
	}
	return "", false
}

// pass lets another replica serve a request, and returns its answer.
func (s *replicas) pass(r *http.Request, owner string) (answer remoteMessage, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	opened, err := s.sendMessage(ctx, owner, remoteMessage{Kind: openPage, Target: r.URL.RequestURI(), Cookie: ownCookies(r)})
	for err == nil {
		if answer, err = s.sendMessage(ctx, owner, remoteMessage{Kind: askAnswer, Ticket: opened.Ticket}); err != nil || answer.Status != 0 {
			break
		}
		err = timeout.Sleep(ctx, remotePause)
	}
	return answer, err
}

// ownCookies returns the cookies of these pages and drops the browser's other cookies. Other pages
// of the host do not concern the other replica, and their cookies may be secret.
func ownCookies(r *http.Request) (all []string) {
	for _, c := range r.Cookies() {
		if strings.HasPrefix(strings.TrimPrefix(c.Name, "__Host-"), cookiePrefix) {
			all = append(all, c.Name+"="+c.Value)
		}
	}
	return all
}

func flowKey(server, principal string) string {
	return replica.KeyOf("user-login", server+"\x00"+principal)
}

// announceFlow tells the other replicas of a flow. If one of them has a flow of the same user, it
// returns the id of that.
func (s *replicas) announceFlow(ctx context.Context, f *flow) (id string, err error) {
	if s.network == nil {
		return f.id, nil
	}
	err = replica.Update(ctx, s.values, flowKey(f.Server, f.Principal), flowLifetime, func(value []byte) ([]byte, error) {
		id = f.id
		if other, ok := s.instanceOf(string(value)); ok {
			if answer, err := s.sendMessage(ctx, other, remoteMessage{Kind: askFlow, Flow: string(value)}); err == nil && answer.Known {
				id = string(value)
			}
		}
		return []byte(id), nil
	})
	return id, err
}

// awaitRemotely waits for the end of a flow of another replica, if there is one.
func (s *replicas) awaitRemotely(ctx context.Context, server, principal string) error {
	if s.network == nil {
		return nil
	}
	value, _, err := s.values.Get(ctx, flowKey(server, principal))
	if err != nil {
		return err
	}
	owner, ok := s.instanceOf(string(value))
	if !ok {
		return nil
	}
	for {
		switch answer, err := s.sendMessage(ctx, owner, remoteMessage{Kind: askFlow, Flow: string(value)}); {
		case err != nil:
			return err
		case answer.Failed != "":
			return errors.New(answer.Failed)
		case !answer.Known:
			return nil
		}
		if err := timeout.Sleep(ctx, remotePause); err != nil {
			return err
		}
	}
}
