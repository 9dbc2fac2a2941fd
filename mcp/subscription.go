package mcp

import "encoding/json"

// SubscriptionFilter selects the changes that a subscription delivers
// (basic/patterns/subscriptions).
type SubscriptionFilter struct {
	ToolsListChanged      bool     `json:"toolsListChanged,omitzero"`
	PromptsListChanged    bool     `json:"promptsListChanged,omitzero"`
	ResourcesListChanged  bool     `json:"resourcesListChanged,omitzero"`
	ResourceSubscriptions []string `json:"resourceSubscriptions,omitempty"`
	// Extensions holds the fields that extensions add.
	Extensions map[string]json.RawMessage `json:",embed"`
}

// ListenParams opens a subscription. [NotificationAcknowledged], the first message on it, has the
// same parameters: the part of the filter that the server delivers.
type ListenParams struct {
	Meta          Meta               `json:"_meta,omitempty"`
	Notifications SubscriptionFilter `json:"notifications"`
}

// ResourceUpdatedParams names the resource that changed.
type ResourceUpdatedParams struct {
	Meta Meta   `json:"_meta,omitempty"`
	URI  string `json:"uri"`
}
