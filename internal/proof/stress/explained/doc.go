// Package explained holds what an engine says about a call against what it then does with it:
// random rules of all families, random calls, and a twin that nobody asks.
package explained
