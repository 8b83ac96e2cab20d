// Package explained compares the engine's explanations of calls with the outcomes: random rules of
// all families, random calls, and a twin that never explains.
package explained
