// Package slots puts the chain together. The order is defined in one place, [Default]; each slot is
// thin and leaves the work to the package of its family.
package slots
