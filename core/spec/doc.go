// Package spec is what the rules of all families have in common as they are written: the fields
// that each has ([Info]), the names of modes and the like in files, what can't be honoured
// ([FieldError]), IDs that differ ([Normalize]) and copies that share nothing ([Clone]).
package spec
