package shell

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxPast bounds the number of ended shells that the server remembers, to report how they ended.
const maxPast = 32

var errClosed = errors.New("the server is closing")

// openShell opens a shell under the handle, or under a new handle if it is empty. The caller must
// call leaveShell.
func (s *Server) openShell(ctx context.Context, principal, handle string) (*shell, error) {
	if err := s.reservePlace(); err != nil {
		return nil, err
	}
	defer s.tasks.Done()
	sh, err := startShell(ctx, s.program, s.opts.MaxOutput/2)
	s.mu.Lock()
	s.opening--
	if err != nil {
		s.mu.Unlock()
		return nil, fmt.Errorf("could not open a shell: %w", err)
	}
	if s.closed {
		s.mu.Unlock()
		sh.endShell("the server was closed")
		return nil, errClosed
	}
	if handle == "" {
		handle = strings.ToLower(rand.Text())
	}
	sh.handle, sh.principal, sh.calls = handle, principal, 1
	s.shells[handle] = sh
	s.mu.Unlock()
	return sh, nil
}

// reservePlace adds to s.opening if another shell is allowed. When the shell has started or has
// failed to, the caller must subtract it again and call tasks.Done; Close waits for that.
func (s *Server) reservePlace() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.sweepEnded()
	if len(s.shells)+s.opening >= s.opts.MaxShells {
		return fmt.Errorf("the maximum of %d open shells is reached: use one of them, by its handle, or end one with the command exit", s.opts.MaxShells)
	}
	s.opening++
	s.tasks.Add(1)
	return nil
}

// sweepEnded moves ended shells from s.shells to s.past. The caller holds s.mu.
func (s *Server) sweepEnded() {
	for handle, sh := range s.shells {
		if sh.isGone() && sh.calls == 0 {
			delete(s.shells, handle)
			s.rememberEnded(sh)
		}
	}
}

// rememberEnded adds a shell to s.past. The caller holds s.mu.
func (s *Server) rememberEnded(sh *shell) {
	if sh.idle != nil {
		sh.idle.Stop()
	}
	s.past = append(s.past, sh)
	if len(s.past) > maxPast {
		s.past = slices.Delete(s.past, 0, 1)
	}
}

// enterShell returns the shell of a handle, even if it has ended. The caller must call leaveShell.
func (s *Server) enterShell(principal, handle string) (*shell, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	sh := s.shells[handle]
	if sh == nil {
		if i := slices.IndexFunc(s.past, func(p *shell) bool { return p.handle == handle }); i >= 0 {
			sh = s.past[i]
		}
	}
	if sh == nil || sh.principal != principal {
		return nil, fmt.Errorf("no shell has the handle %q: omit the argument shell to open one, then pass the handle from the result", handle)
	}
	sh.calls++
	if sh.idle != nil {
		sh.idle.Stop()
	}
	return sh, nil
}

// leaveShell ends a call's use of a shell. The shell's idle time begins with the end of the last
// call.
func (s *Server) leaveShell(sh *shell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh.calls--
	if s.closed || sh.calls > 0 || s.opts.Idle < 0 || s.shells[sh.handle] != sh {
		return
	}
	if sh.idle == nil {
		sh.idle = time.AfterFunc(s.opts.Idle, func() { s.expireShell(sh) })
	} else {
		sh.idle.Reset(s.opts.Idle)
	}
}

// expireShell ends a shell that was idle for too long.
func (s *Server) expireShell(sh *shell) {
	s.mu.Lock()
	if s.closed || sh.calls > 0 || s.shells[sh.handle] != sh {
		s.mu.Unlock()
		return
	}
	delete(s.shells, sh.handle)
	s.rememberEnded(sh)
	s.tasks.Add(1)
	s.mu.Unlock()
	defer s.tasks.Done()
	sh.endShell(fmt.Sprintf("it was not used for %v", s.opts.Idle))
}

// restartShell ends a shell and opens a new one under its handle. Other calls that wait for the old
// shell return when it ends.
func (s *Server) restartShell(ctx context.Context, old *shell) (*shell, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errClosed
	}
	if current := s.shells[old.handle]; old.restarting || current != nil && current != old {
		s.mu.Unlock()
		return nil, fmt.Errorf("the shell %s is being restarted by another call: call again without restart", old.handle)
	}
	old.restarting = true
	delete(s.shells, old.handle)
	s.past = slices.DeleteFunc(s.past, func(p *shell) bool { return p == old })
	s.rememberEnded(old) // until the new shell is open, which may fail
	s.tasks.Add(1)
	s.mu.Unlock()
	old.endShell("it was restarted")
	s.tasks.Done()
	sh, err := s.openShell(ctx, old.principal, old.handle)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		old.restarting = false
		return nil, err
	}
	s.past = slices.DeleteFunc(s.past, func(p *shell) bool { return p == old })
	sh.noteRestart()
	return sh, nil
}
