package mcpwire

// TaskEndError is the error of a wait for a task that has ended, or is not known to its server.
type TaskEndError struct{ Err error }

// Error returns the text of Err.
func (e *TaskEndError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *TaskEndError) Unwrap() error { return e.Err }

// TaskQuestionError is the error of a wait for a task that has asked a question without an answer.
// The task still waits for one.
type TaskQuestionError struct{ Err error }

// Error returns the text of Err.
func (e *TaskQuestionError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *TaskQuestionError) Unwrap() error { return e.Err }
