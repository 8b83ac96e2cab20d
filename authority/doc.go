// Package authority says who may call a resource: an allow list names the callers that
// may, a deny list those that may not.
//
// A caller is known by its origin, which the program gives with the context of a call
// (see [core.WithContext]). Names are compared as they are, every letter of them; only
// the blanks around a name in a list are dropped.
//
// Take an allow list where you know who ought to call: whoever is new is refused until
// somebody writes it down. Take a deny list to keep single callers out of what
// everybody else may use.
package authority
