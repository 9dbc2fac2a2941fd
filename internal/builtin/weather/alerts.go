package weather

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

type alertsIn struct {
	State string `json:"state" doc:"Two-letter code of a US state or territory, such as CA" minLength:"2" maxLength:"2" pattern:"^[A-Za-z]{2}$"`
	Limit int    `json:"limit,omitzero" doc:"The maximal number of alerts; the most severe come first" default:"20" minimum:"1" maximum:"500"`
}

// Alerts is the result of get_alerts.
type Alerts struct {
	State  string  `json:"state"`
	Total  int     `json:"total" doc:"The number of active alerts; alerts has at most limit of them"`
	Alerts []Alert `json:"alerts" doc:"The most severe first"`
}

// Alert is one active alert.
type Alert struct {
	ID          string `json:"id,omitzero"`
	Event       string `json:"event" doc:"Such as Tornado Warning"`
	Headline    string `json:"headline,omitzero"`
	Area        string `json:"area" doc:"The counties or zones, separated by semicolons"`
	Severity    string `json:"severity" doc:"Extreme, Severe, Moderate, Minor or Unknown"`
	Certainty   string `json:"certainty,omitzero" doc:"Observed, Likely, Possible, Unlikely or Unknown"`
	Urgency     string `json:"urgency,omitzero" doc:"Immediate, Expected, Future, Past or Unknown"`
	Onset       string `json:"onset,omitzero" doc:"When it begins (RFC 3339)"`
	Ends        string `json:"ends,omitzero" doc:"When it ends or, if that is unknown, when the alert expires (RFC 3339)"`
	Sender      string `json:"sender,omitzero"`
	Description string `json:"description,omitzero"`
	Instruction string `json:"instruction,omitzero" doc:"What to do"`
}

// alertsAnswer is the answer of /alerts/active. A member without a value is null.
type alertsAnswer struct {
	Features []struct {
		Properties struct {
			ID          string `json:"id"`
			Event       string `json:"event"`
			Headline    string `json:"headline"`
			AreaDesc    string `json:"areaDesc"`
			Severity    string `json:"severity"`
			Certainty   string `json:"certainty"`
			Urgency     string `json:"urgency"`
			Onset       string `json:"onset"`
			Ends        string `json:"ends"`
			Expires     string `json:"expires"`
			SenderName  string `json:"senderName"`
			Description string `json:"description"`
			Instruction string `json:"instruction"`
		} `json:"properties"`
	} `json:"features"`
}

// severities are the API's values of severity, the most severe first.
var severities = []string{"Extreme", "Severe", "Moderate", "Minor"}

func (s *Server) getAlerts(ctx context.Context, in alertsIn) (*mcp.CallToolResult, error) {
	state := strings.ToUpper(in.State)
	server.Progress(ctx, 0, 1, "fetching the alerts in "+state)
	u := s.api.base.JoinPath("alerts", "active")
	u.RawQuery = url.Values{"area": {state}}.Encode()
	var answer alertsAnswer
	if err := s.api.fetchJSON(ctx, u, "alerts in "+state, &answer); err != nil {
		return nil, err
	}
	server.Progress(ctx, 1, 1, "done")
	a := newAlerts(state, &answer, in.Limit)
	return textAndStructured(a.formatSummary(), a)
}

func newAlerts(state string, answer *alertsAnswer, limit int) Alerts {
	bySeverity := make([][]Alert, len(severities)+1)
	for _, f := range answer.Features {
		p := f.Properties
		alert := Alert{
			ID: p.ID, Event: p.Event, Headline: p.Headline, Area: p.AreaDesc, Severity: p.Severity, Certainty: p.Certainty,
			Urgency: p.Urgency, Onset: p.Onset, Ends: p.Ends, Sender: p.SenderName,
			Description: strings.TrimSpace(p.Description), Instruction: strings.TrimSpace(p.Instruction),
		}
		if alert.Ends == "" {
			alert.Ends = p.Expires
		}
		rank := severityRank(alert.Severity)
		bySeverity[rank] = append(bySeverity[rank], alert)
	}
	a := Alerts{State: state, Total: len(answer.Features)}
	for _, alerts := range bySeverity {
		a.Alerts = append(a.Alerts, alerts...)
	}
	a.Alerts = a.Alerts[:min(len(a.Alerts), limit)]
	return a
}

func severityRank(severity string) int {
	for rank, known := range severities {
		if severity == known {
			return rank
		}
	}
	return len(severities)
}

func (a *Alerts) formatSummary() string {
	if a.Total == 0 {
		return "No active alerts for " + a.State + "."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d active alerts for %s", a.Total, a.State)
	if a.Total == 1 {
		b.Reset()
		fmt.Fprintf(&b, "1 active alert for %s", a.State)
	}
	if len(a.Alerts) < a.Total {
		fmt.Fprintf(&b, ", the %d most severe of them", len(a.Alerts))
	}
	b.WriteString(":\n")
	for i := range a.Alerts {
		a.Alerts[i].writeText(&b)
	}
	return b.String()
}

func (a *Alert) writeText(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s (%s)\nArea: %s\n", a.Event, a.Severity, a.Area)
	for _, line := range []struct{ label, text string }{{"From: ", a.Onset}, {"Until: ", a.Ends}, {"", a.Headline}, {"", a.Description}, {"What to do: ", a.Instruction}} {
		if line.text != "" {
			fmt.Fprintf(b, "%s%s\n", line.label, line.text)
		}
	}
}
