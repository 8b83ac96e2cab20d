package main

import (
	"math"
	"math/rand/v2"
	"time"
)

// Times are whole ticks.
const (
	tick   = 200 * time.Millisecond
	second = int(time.Second / tick)
	minute = 60 * second
)

const (
	limit    = 300_000 // tokens a minute
	estimate = 500     // tokens that a call reserves
	median   = 400     // tokens of an answer
	chunk    = 5       // tokens that an answer sends in a tick
)

// Callers ask for 1.5 times the limit for ten minutes, then for half of it for nearly five, so that
// bursts begin at any second of a minute.
const (
	burst  = 10 * minute
	period = 15*minute - 10*second
)

// call is a call of a model, whose answer takes 1 to 90 seconds.
type call struct {
	at, end int
	used    int64 // tokens of the answer, or of the part before it failed
	failed  bool
}

// trace returns the calls in order. Answers have log-normal lengths, as in examples/llm, and one in
// twenty fails midway.
func trace() []call {
	random := rand.New(rand.NewPCG(1, 2))
	calls := make([]call, 100_000)
	for i := range calls {
		chunks := int(median / chunk * math.Exp(0.8*random.NormFloat64()))
		failed := random.IntN(20) == 0
		if failed {
			chunks /= 2
		}
		chunks = min(max(chunks, second), 90*second)
		calls[i] = call{end: chunks, used: int64(chunk * chunks), failed: failed}
	}
	at, apart := 0.0, float64(minute)*mean(calls)/limit
	for i := range calls {
		load := 0.5
		if int(at)%period < burst {
			load = 1.5
		}
		at += random.ExpFloat64() * apart / load
		calls[i].at = int(at)
		calls[i].end += int(at)
	}
	return calls
}

func mean(calls []call) float64 {
	sum := 0.0
	for _, c := range calls {
		sum += float64(c.used)
	}
	return sum / float64(len(calls))
}

// outcome holds the results of one policy. Tokens count when they are streamed.
type outcome struct {
	admitted int
	leaked   int64
	worst    float64 // the most tokens of a real minute, as a share of the limit
	over     float64 // the share of minutes in bursts that had more tokens than the limit
	used     float64 // the tokens of the mean minute in bursts, as a share of the limit
}

func play(p policy, calls []call) (o outcome) {
	streamed := make([]int64, calls[len(calls)-1].at+100*second)
	ends := make([][]func(int), len(streamed))
	for now := range ends {
		for _, exit := range ends[now] {
			exit(now)
		}
		for ; len(calls) > 0 && calls[0].at == now; calls = calls[1:] {
			c := calls[0]
			if exit := p.enter(now, c); exit != nil {
				o.admitted++
				ends[c.end] = append(ends[c.end], exit)
				for at := c.at; at < c.end; at++ {
					streamed[at] += chunk
				}
			}
		}
	}
	o.leaked = p.leaked()

	w, n := &window{}, 0.0
	for now, tokens := range streamed {
		w.add(now, now, tokens)
		share := float64(w.total) / limit
		o.worst = max(o.worst, share)
		if phase := now % period; phase < 2*minute || phase >= burst {
			continue // the first minute is left out
		}
		n++
		o.used += (share - o.used) / n
		if share > 1 {
			o.over++
		}
	}
	o.over /= n
	return o
}
