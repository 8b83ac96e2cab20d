// Package spec is what the declarations of rules have in common in all families: the fields that
// each has ([Info]), the names of modes and the like in files, what can't be honoured
// ([FieldError]), distinct IDs ([Normalize]) and deep copies ([Clone]).
package spec
