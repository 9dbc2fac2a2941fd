package search_test

import (
	"fmt"
	"testing"

	"github.com/dowel-mcp/dowel/internal/search"
)

// manyTools are 4,000 invented tools of 200 servers, with as many words as real ones have.
func manyTools() (all []search.Tool) {
	verbs := []string{"create", "list", "get", "update", "delete", "search", "export", "approve", "schedule", "compare"}
	things := []string{"invoice", "customer", "shipment", "report", "meeting", "warehouse", "contract", "vehicle", "recipe",
		"sensor", "payment", "lesson", "ticket", "garden", "concert", "passport", "machine", "letter", "museum", "bridge"}
	for i := range 4000 {
		verb, thing, server := verbs[i%10], things[i/10%20], fmt.Sprintf("server%d", i/20)
		all = append(all, search.Tool{
			Name: fmt.Sprintf("%s__%s_%s_%d", server, verb, thing, i), Server: server, Title: verb + " a " + thing,
			Description: fmt.Sprintf("%s a %s of the company. Use this when the user wants to %s one %s; for another kind of "+
				"thing use %s. Returns the %s with its identifier, its owner, when it was changed and the part%d that it belongs to.",
				verb, thing, verb, thing, things[i%20], thing, i%700),
			Parameters: []search.Parameter{
				{Name: thing + "_id", Description: "The identifier of the " + thing},
				{Name: "page", Description: "Which page of the result, from 1"},
				{Name: "format", Description: "How to write it json csv table"},
			},
		})
	}
	return all
}

func BenchmarkNew4000(b *testing.B) {
	tools := manyTools()
	b.ReportAllocs()
	for b.Loop() {
		search.New(tools)
	}
}

func BenchmarkFind4000(b *testing.B) {
	index := search.New(manyTools())
	for _, query := range []string{"make a report for a client", "list warehuoses", "what shipments are late and which customer waits for them"} {
		b.Run(query, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				index.Find(query, 5)
			}
		})
	}
}
