// Go's rate limiter for w5: golang.org/x/time/rate, with a limit that never binds.
// SPDX-License-Identifier: MIT
package main

import (
	"fmt"
	"sort"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	calls    = 2000000
	measured = 5
)

func main() {
	limiter := rate.NewLimiter(rate.Limit(1e9), 1<<30)
	for threads := 1; threads <= 2; threads++ {
		var ns []float64
		for i := 0; i <= measured; i++ {
			var all sync.WaitGroup
			all.Add(threads)
			begin := time.Now()
			for t := 0; t < threads; t++ {
				go func() {
					for k := 0; k < calls; k++ {
						limiter.Allow()
					}
					all.Done()
				}()
			}
			all.Wait()
			if i > 0 {
				ns = append(ns, float64(time.Since(begin).Nanoseconds())/calls)
			}
		}
		sort.Float64s(ns)
		fmt.Printf("RESULT w5 go-rate rate_ns_%d=%.2f\n", threads, ns[measured/2])
	}
}
