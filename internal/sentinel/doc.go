// Package sentinel has the rules of alibaba/Sentinel for Java, and those of sentinel-golang, as
// their files write them, and translates them into ours. The reader of rule files and the
// replay of recorded traces use the same translation, so what a file comes to mean is what the
// traces have shown.
//
// A rule is a struct whose yaml tags are the keys of Sentinel's JSON. Its zero value is not what
// Sentinel takes where a file says nothing: JavaFlowUnset and the like are.
//
//   - Check says why Sentinel itself would drop the rule.
//   - Native is the rule in our terms, as a reader would have written it: what is the same for
//     both is left out, what is not is said. It isn't normalized, so its family may still refuse it.
//
// Errors are [spec.FieldError]s that name the fields of Sentinel.
package sentinel
