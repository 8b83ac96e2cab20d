package family

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/core/spec"
)

// Refused describes the rejection of a resource's calls by a rule, for engine.NewCounted. The
// rejection of a rule that counts all its names together has its pattern instead of a resource.
func Refused(kind core.Kind, resource string, rule spec.Info) core.BlockError {
	if rule.Together {
		resource = rule.Resource
	}
	return core.BlockError{Kind: kind, Resource: resource, Rule: rule.ID, Status: rule.Refusal.Status, Body: rule.Refusal.Body}
}
