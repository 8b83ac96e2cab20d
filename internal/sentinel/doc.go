// Package sentinel reads the rules of alibaba/Sentinel for Java and of sentinel-golang, as their
// files write them, and translates them into rules of this library. The reader of rule files and the
// replay of recorded traces share the translation, so the traces prove the meaning of a file.
//
// A rule is a struct whose yaml tags are the keys of Sentinel's JSON. Its zero value doesn't have
// Sentinel's defaults: JavaFlowUnset and the like do.
//
//   - Check returns the reason for which Sentinel itself would drop the rule.
//   - Native translates the rule as a reader would write it: defaults are left out, and differences are
//     warnings. The result isn't normalized, so its family may still reject it.
//
// Errors are [spec.FieldError]s that name Sentinel's fields.
package sentinel
