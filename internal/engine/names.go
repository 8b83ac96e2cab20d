package engine

import "github.com/penstock-go/penstock/node"

// Names are the names in a rule set: contexts, and resources, each with callers and with the
// contexts in which it is called.
type Names struct {
	resources map[string]map[string]bool
	calls     map[string]map[string]bool
	contexts  map[string]bool
}

// Resource adds a resource.
func (n *Names) Resource(name string) {
	if _, noted := n.resources[name]; !noted {
		n.resources[name] = nil
	}
}

// named reports whether the rules name the resource.
func (n *Names) named(resource string) bool {
	_, noted := n.resources[resource]
	return noted
}

// Origin adds a caller of a resource.
func (n *Names) Origin(resource, origin string) {
	if n.resources[resource] == nil {
		n.resources[resource] = make(map[string]bool)
	}
	n.resources[resource][origin] = true
}

// Context adds a context.
func (n *Names) Context(name string) { n.contexts[name] = true }

// Call adds a resource in a context.
func (n *Names) Call(resource, context string) {
	n.Resource(resource)
	n.Context(context)
	if n.calls[resource] == nil {
		n.calls[resource] = make(map[string]bool)
	}
	n.calls[resource][context] = true
}

// names returns the names in the rules of the set.
func (s *Snapshot) names() *Names {
	names := &Names{
		resources: make(map[string]map[string]bool),
		calls:     make(map[string]map[string]bool),
		contexts:  map[string]bool{node.DefaultContext: true},
	}
	for _, family := range s.families {
		if family != nil {
			family.Names(names)
		}
	}
	return names
}

// pin gives everything named by the rules a permanent node.
func (e *Engine) pin(names *Names) {
	for name, origins := range names.resources {
		r := e.resources.Pin(name)
		for origin := range origins {
			r.Origins().Pin(origin)
		}
		for context := range names.calls[name] {
			r.Calls().Reserve(context) // in the tree once it is called
		}
	}
	for name := range names.contexts {
		e.tree.Entrances().Pin(name)
	}
}
