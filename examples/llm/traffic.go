package main

import (
	"context"
	"errors"
	"iter"
	"math"
	"math/rand/v2"
	"time"
)

const (
	tick  = 250 * time.Millisecond
	speed = 20 // tokens that the model sends in a tick
)

var errBroken = errors.New("the model broke off")

// request is a prompt, and the answer that the model will give.
type request struct {
	prompt  int64  // its tokens, as the proxy counts them
	counted int64  // as the model counts them
	tokens  int64  // of the whole answer
	breaks  bool   // midway
	wait    func() // until the next tick
}

// answer streams the answer of the model, chunk by chunk.
func (r request) answer(ctx context.Context) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		for sent := int64(0); sent < r.tokens; sent += speed {
			r.wait()
			switch {
			case ctx.Err() != nil:
				yield(0, ctx.Err())
				return
			case r.breaks && sent > r.tokens/2:
				yield(0, errBroken)
				return
			case !yield(min(speed, r.tokens-sent), nil):
				return
			}
		}
	}
}

// traffic is 90 calls a minute. Each is a coroutine that stops until the next tick when it waits for
// the model, so every run is the same.
type traffic struct {
	proxy   *proxy
	random  *rand.Rand
	running []client
}

// client continues its call with next, until that returns false.
type client struct {
	next  func() (struct{}, bool)
	leave context.CancelFunc
	flees bool // it may leave before its answer is complete
}

// tick lets a client come, and each call continue.
func (t *traffic) tick(open bool) {
	if open && t.random.Float64() < 90*tick.Minutes() {
		t.running = append(t.running, t.client())
	}
	running := t.running[:0]
	for _, c := range t.running {
		if c.flees && t.random.IntN(10) == 0 {
			c.leave()
		}
		if _, ok := c.next(); ok {
			running = append(running, c)
		} else {
			c.leave()
		}
	}
	t.running = running
}

func (t *traffic) client() client {
	tenant := []string{"gold", "gold", "free"}[t.random.IntN(3)]
	r := request{prompt: t.logNormal(700, 0.6), tokens: t.logNormal(400, 0.8)}
	r.counted = r.prompt * (90 + t.random.Int64N(21)) / 100
	r.breaks = t.random.IntN(20) == 0 // 5 %
	ctx, leave := context.WithCancel(context.Background())
	next, _ := iter.Pull(func(yield func(struct{}) bool) {
		r.wait = func() { yield(struct{}{}) }
		t.proxy.count(t.proxy.chat(ctx, tenant, r))
	})
	return client{next, leave, t.random.IntN(20) == 0}
}

// logNormal returns a length: half of them are shorter than the median, and a few are much longer.
func (t *traffic) logNormal(median, sigma float64) int64 {
	return 1 + int64(median*math.Exp(sigma*t.random.NormFloat64()))
}
