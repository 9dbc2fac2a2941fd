// Package agent lets a language model work with the tools of MCP servers until a task is done.
//
//	toolbox, err := agent.Dial(ctx, gateway, client.Options{Answers: client.Answers{Elicit: ask}}) // any target of client.Dial
//	if err != nil {
//		return err
//	}
//	defer toolbox.Close()
//	a := agent.New(model, toolbox, &agent.Options{Approve: approve})
//	for event, err := range a.Run(ctx, mcp.Text("Summarise the file notes.txt.")) {
//		…
//	}
//
// [Agent.Run] is the loop: the model replies, its tool calls run, and their results go back to it.
// The loop ends when the model calls no tool, its reply is cut off, the steps are used up, or ctx
// ends. The caller's goroutine owns the conversation. Tools run beside it, and report to it as
// events. The package displays nothing: a program renders the events.
//
// # Approval
//
// Every call needs a decision before it is made, by [Mode], [Options.Allowed] or [Options.Approve].
// [Approval] reports the decision and its source. While a tool runs, its server may ask the user
// (elicitation), which calls Elicit of the client's options, or ask the model (sampling), which
// needs a decision, too. All questions are asked on the goroutine of the run, one at a time, each
// after an [Asked] event. When the run ends, all waiting calls and servers get an error.
//
// # Resources
//
// If the servers have resources, the model gets two tools more, list_resources and read_resource.
// [Agent.ReadResource] reads one for the user's input. Resources in the conversation are watched:
// before the next reply the model is told which have changed ([ResourcesChanged]).
//
// # Skills
//
// If the servers of a [Toolbox] have skills (SEP-2640), the model gets the tool read_skill. Its
// description lists the skills. It loads one, and reads the files of loaded ones; both are
// verified. Skills are text of servers and may tell the model to run programs. So the user approves
// each skill, in its present contents, before it is loaded. Where the user cannot be asked (no
// [Options.Approve], or [ModeReadOnly]), a skill is loaded, and from then on earlier approvals and
// [Options.Allowed] do not count. The same applies if [Options.Messages] has calls of read_skill.
//
// # The model's window
//
// [Agent.Tokens] reports how a conversation fills the model's window. Three measures keep it small:
//
//   - Of a long result ([Limits.MaxResult]) the model gets the head and the tail, and a tool,
//     read_result, that reads and searches the rest. [Limits.MaxMedia] limits binaries.
//   - Instead of very many definitions of tools ([Limits.SearchAt]) the model gets a tool,
//     search_tools, and the definitions of the tools that it has found or called. Their order never
//     changes, so that the provider can use its cache.
//   - Near to the limit ([Limits.CompactAt]) the older part of the conversation is replaced by a
//     summary that the model writes ([Compacted]). The task, the user's last words and the last
//     exchanges stay as they are.
package agent
