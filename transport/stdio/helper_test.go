//go:build unix

package stdio

func sh(script string) Command {
	return Command{Path: "/bin/sh", Args: []string{"-c", script}}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
