// Package sketch counts what a log holds in bounded memory: values and their quantiles, different
// texts, and the most frequent ones.
package sketch
