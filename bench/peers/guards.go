// Go's semaphores for w5: a buffered channel, and golang.org/x/sync/semaphore.
// SPDX-License-Identifier: MIT
package main

import (
	"fmt"
	"sort"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	permits  = 4
	calls    = 2000000
	measured = 5
)

func roundNs(threads int, run func()) float64 {
	var all sync.WaitGroup
	all.Add(threads)
	begin := time.Now()
	for i := 0; i < threads; i++ {
		go func() { run(); all.Done() }()
	}
	all.Wait()
	return float64(time.Since(begin).Nanoseconds()) / calls
}

func measure(system string, metric string, run func()) {
	for threads := 1; threads <= 2; threads++ {
		var ns []float64
		roundNs(threads, run)
		for i := 0; i < measured; i++ {
			ns = append(ns, roundNs(threads, run))
		}
		sort.Float64s(ns)
		fmt.Printf("RESULT w5 %s %s_ns_%d=%.2f\n", system, metric, threads, ns[measured/2])
	}
}

func main() {
	channel := make(chan struct{}, permits)
	weighted := semaphore.NewWeighted(permits)
	measure("go-chan", "bulkhead", func() {
		for i := 0; i < calls; i++ {
			channel <- struct{}{}
			<-channel
		}
	})
	measure("go-weighted", "bulkhead", func() {
		for i := 0; i < calls; i++ {
			if weighted.TryAcquire(1) {
				weighted.Release(1)
			}
		}
	})
}
