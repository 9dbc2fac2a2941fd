package cli

import "github.com/spf13/cobra"

// exitCodesHelp is the text of dowel help exit-codes.
const exitCodesHelp = `dowel ends with

    0  success; also if dowel up or dowel serve is stopped
    1  the tool reported a failure, or the result could not be saved
    2  a wrong command line: a wrong flag, an unknown server or tool, or an
       argument that is missing or does not match the tool's schema
    3  no connection: the server could not be started or reached, or the connection
       was lost; or the command needs a running dowel and finds none
    4  a protocol error: the server refused the request with an error, or its answer
       breaks the protocol or the tool's own output schema
  124  a time limit: --timeout, --idle-timeout, --connect-timeout, or --max-time of dowel run
  130  interrupted by Ctrl-C; for any other signal, 128 plus its number

dowel run uses the same codes and gives 2 and 3 a second meaning. Its message tells the difference. With --json, the
"reason" of the event "end" does; if the task could not begin, there is no such event.

    0  the model has answered
    1  a failure: the model's provider refuses or cannot be reached, or the answer
       was cut off at its maximal length
    2  the limit of --max-steps is reached; or, before the task begins, the command
       line is wrong, or no model is configured
    3  the model called a tool that --approve does not allow, and dowel could not ask;
       or, before the task begins, a named server cannot be reached

If a tool fails, the model reads its error; the exit code does not change.

If the reader of the output goes away (dowel tools … | head -1), that is not a failure.`

// newExitCodesTopic returns the help topic exit-codes.
func newExitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesHelp}
}
