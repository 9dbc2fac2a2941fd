package agent

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// Tokens says how much of the model's window a conversation takes, part by part. The provider's
// count of the last request is divided among the parts by their estimates. Before the first reply
// all counts are estimates: a token for four ASCII characters, or for one other character.
type Tokens struct {
	System, Tools, Messages int
	// Total is the size of the next request. Window is the size of the model's context, for the
	// request and its reply together; 0: unknown.
	Total, Window int
	// PerTool are the tools in the order of their names, and PerMessage the messages as
	// [Agent.Messages] returns them.
	PerTool    []ToolTokens
	PerMessage []int
	// Estimated reports that the provider has not counted a request yet.
	Estimated bool
	// Spent counts the tokens of all replies so far, with samples, summaries and the replies in
	// [Options.Messages].
	Spent Usage
}

// ToolTokens is the size of a tool's definition.
type ToolTokens struct {
	Name    string
	Tokens  int
	Offered bool // the next request holds it; it counts for Tokens.Tools
}

// Tokens returns the use of the window. It must not be called during a run.
func (a *Agent) Tokens() Tokens {
	a.spent.accumulate(a.sampleUsage.takeUsage())
	t := Tokens{System: a.calibrated(estimateText(a.systemPrompt())), Window: a.windowSize(), Estimated: a.factor == 0, Spent: a.spent}
	offered := map[string]bool{}
	for _, tool := range a.offeredTools() {
		offered[tool.Name] = true
		n := a.calibrated(estimateTool(&tool))
		t.Tools += n
		t.PerTool = append(t.PerTool, ToolTokens{tool.Name, n, true})
	}
	for i := range a.listed {
		if tool := &a.listed[i]; !offered[tool.Name] {
			t.PerTool = append(t.PerTool, ToolTokens{tool.Name, a.calibrated(estimateTool(tool)), false})
		}
	}
	slices.SortFunc(t.PerTool, func(a, b ToolTokens) int { return cmp.Compare(a.Name, b.Name) })
	for _, size := range a.history.sizes {
		n := a.calibrated(size)
		t.Messages += n
		t.PerMessage = append(t.PerMessage, n)
	}
	t.Total = t.System + t.Tools + t.Messages
	return t
}

// windowSize returns the size of the window in tokens; 0: unknown.
func (a *Agent) windowSize() int { return a.model.Window() }

// estimateRequest returns the estimated tokens of the next request.
func (a *Agent) estimateRequest() int {
	a.offeredTools()
	return estimateText(a.systemPrompt()) + a.offer.size + a.history.size
}

// calibrated turns an estimate into the provider's tokens, as far as its count is known.
func (a *Agent) calibrated(estimate int) int {
	if a.factor == 0 {
		return estimate
	}
	return int(math.Round(float64(estimate) * a.factor))
}

// maxFactor limits how far the provider's count may differ from the estimate, either way. Some
// servers report wrong counts.
const maxFactor = 5

// calibrate compares an estimate with the provider's count of the same request.
func (a *Agent) calibrate(estimate int, u *Usage) {
	if u != nil && u.Input > 0 && estimate > 0 {
		a.factor = min(max(float64(u.Input)/float64(estimate), 1.0/maxFactor), maxFactor)
	}
}

// usageMeter counts the tokens of samples, which may end beside the goroutine of a run, or after
// it.
type usageMeter struct {
	mu    sync.Mutex
	usage Usage
}

func (m *usageMeter) addUsage(u *Usage) {
	if u != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.usage.accumulate(*u)
	}
}

// takeUsage returns the tokens since its last call.
func (m *usageMeter) takeUsage() Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.usage
	m.usage = Usage{}
	return u
}

func (u *Usage) accumulate(more Usage) {
	u.Input += more.Input
	u.Cached += more.Cached
	u.Output += more.Output
}
