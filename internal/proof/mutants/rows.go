package main

import "slices"

var rows = slices.Concat(statRows, coreRows, familyRows, upstreamRows, ruleRows, clusterRows, togetherRows, quotaRows, replayRows)
