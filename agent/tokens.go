package agent

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// Tokens is how much of the model's window a conversation takes, part by part. What the provider has counted in the last request is
// shared out to its parts as they were estimated; before the first answer they are estimates: a token for four ASCII characters, or
// one other character.
type Tokens struct {
	System, Tools, Messages int
	// Total is what the next request takes, and Window what it and its reply may take together; 0: not known.
	Total, Window int
	// PerTool are the tools in the order of their names, and PerMessage the messages as [Agent.Messages] returns them.
	PerTool    []ToolTokens
	PerMessage []int
	// Estimated says that the provider has told no figures yet.
	Estimated bool
	// Spent is what all replies have taken so far, those of [Options.Messages], samples and summaries among them.
	Spent Usage
}

// ToolTokens is what a tool's definition takes.
type ToolTokens struct {
	Name    string
	Tokens  int
	Offered bool // it is in the next request, and counts for Tokens.Tools
}

// Tokens returns how much of the window is used. It must not be called while a run goes on.
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

// windowSize is how many tokens the model takes; 0: not known.
func (a *Agent) windowSize() int {
	if a.opts.Window > 0 {
		return a.opts.Window
	}
	return a.model.Window()
}

// estimateRequest is what the next request takes, as it is estimated.
func (a *Agent) estimateRequest() int {
	a.offeredTools()
	return estimateText(a.systemPrompt()) + a.offer.size + a.history.size
}

// calibrated is an estimate as the provider would count it.
func (a *Agent) calibrated(estimate int) int {
	if a.factor == 0 {
		return estimate
	}
	return int(math.Round(float64(estimate) * a.factor))
}

// maxFactor bounds how far the provider's figures may be from the estimate to be believed, either way.
const maxFactor = 5

// calibrate takes what a request has taken that was estimated.
func (a *Agent) calibrate(estimate int, u *Usage) {
	if u != nil && u.Input > 0 && estimate > 0 {
		a.factor = min(max(float64(u.Input)/float64(estimate), 1.0/maxFactor), maxFactor)
	}
}

// usageMeter counts what samples take, which end beside the goroutine of a run, or after it.
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

// takeUsage returns what was counted since it was called last.
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
