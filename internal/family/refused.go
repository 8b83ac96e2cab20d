package family

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
)

// Refused describes the rejection of a resource's calls by a rule, for engine.NewCounted.
func Refused(kind core.Kind, resource string, rule spec.Info) core.BlockError {
	return core.BlockError{Kind: kind, Resource: resource, Rule: rule.ID, Status: rule.Refusal.Status, Body: rule.Refusal.Body}
}
