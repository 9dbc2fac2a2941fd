package cli

import "github.com/spf13/cobra"

const exitCodesHelp = `dowel ends with

    0  all went well; dowel up and dowel serve were told to end
    1  the tool says that it failed, or the result could not be saved
    2  the command line cannot be used: a wrong flag, an unknown server or tool,
       an argument that is missing or does not fit the tool's schema
    3  no connection: the server could not be started or reached, or it went away;
       or no dowel is running that could be asked
    4  a protocol error: the server refused the request with an error,
       or sent what the protocol or the tool's own output schema does not allow
  124  a limit passed: --timeout, --idle-timeout, --connect-timeout, or --max-time of dowel run
  130  interrupted by Ctrl-C; any other signal ends with 128 and its number

dowel run ends with these, and adds two meanings. Its message tells which it is, and with --json the event end does, by its
"reason": what makes a task impossible to begin has no such event.

    0  the model has answered
    1  a failure: the model's provider refuses, or is not reached; or the answer
       was cut off at the bound of its length
    2  the steps of --max-steps are spent; or, before the task begins, the command
       line cannot be used, or there is no model
    3  an approval is needed: a tool was called that --approve does not let run; or,
       before the task begins, a server that was named cannot be reached

That a tool fails is for the model to read, and changes no exit code.

A reader that goes away (dowel tools … | head -1) is no failure.`

func newExitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesHelp}
}
