// Package spec defines the common part of all families' rule declarations: the shared fields
// ([Info]), the names of modes and the like in files, errors in fields ([FieldError]), distinct IDs
// ([Normalize]) and deep copies ([Clone]). Most programs don't import it.
package spec
