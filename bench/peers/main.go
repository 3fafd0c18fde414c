// Go: a goroutine per task, and per group
//
//	chan        a buffered channel as semaphore, acquired inside the goroutine (submit never blocks)
//	chanout     the same, acquired by the submitter before `go` (submit blocks, as errgroup.SetLimit)
//	weighted    golang.org/x/sync/semaphore, acquired inside the goroutine
//	workers     no goroutine per task, but four per group that read from one channel of 1024 slots
//	            (submit blocks when it is full)
//	workers16k  the same with 16384 slots, so that submit does not block in w1
//
// In w4 a node has an atomic counter; whoever brings it to zero runs it, or starts a goroutine for each further one.
//
// usage: go w1|w2|w3 variant, go w4 counter
// SPDX-License-Identifier: MIT
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	tasks      = 1000000
	groups     = 64
	limit      = 4
	warmUps    = 1
	rounds     = 3
	flood      = 200000
	floodLimit = 2
	ticks      = 1000
	tickEvery  = 2 * time.Millisecond
	settle     = 1500 * time.Millisecond

	flowNodes   = 100000
	flowWidth   = 100
	flowWarmUps = 2
	flowRounds  = 9
	flowWorkers = 2
)

func statusKB(key string) float64 {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), key+":") {
			kb, _ := strconv.ParseFloat(strings.Fields(lines.Text())[1], 64)
			return kb
		}
	}
	return 0
}

//go:noinline
func empty() {}

//go:noinline
func burn(steps uint64) uint64 {
	x := steps | 1
	for i := uint64(0); i < steps; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

var sink uint64

// Steps that take 50 us.
func burnCalibrate() uint64 {
	best := time.Hour
	for k := 0; k < 40; k++ {
		begin := time.Now()
		sink += burn(200000)
		if took := time.Since(begin); took < best {
			best = took
		}
	}
	return uint64(200000 * 50000 / best.Nanoseconds())
}

// ---- w1: each answers when the clock started, since what goes before it does not count

func w1Workers(depth int) time.Time {
	var left sync.WaitGroup
	group := make([]chan func(), groups)
	for i := range group {
		group[i] = make(chan func(), depth)
		for k := 0; k < limit; k++ {
			go func(tasks chan func()) {
				for f := range tasks {
					f()
					left.Done()
				}
			}(group[i])
		}
	}
	begin := time.Now()
	left.Add(tasks)
	for i := 0; i < tasks; i++ {
		group[i%groups] <- empty
	}
	left.Wait()
	for _, c := range group {
		close(c)
	}
	return begin
}

func w1Chan(outside bool) time.Time {
	var left sync.WaitGroup
	group := make([]chan struct{}, groups)
	for i := range group {
		group[i] = make(chan struct{}, limit)
	}
	begin := time.Now()
	left.Add(tasks)
	for i := 0; i < tasks; i++ {
		permits := group[i%groups]
		if outside {
			permits <- struct{}{}
			go func() { empty(); <-permits; left.Done() }()
		} else {
			go func() { permits <- struct{}{}; empty(); <-permits; left.Done() }()
		}
	}
	left.Wait()
	return begin
}

func w1Weighted() time.Time {
	var left sync.WaitGroup
	group := make([]*semaphore.Weighted, groups)
	for i := range group {
		group[i] = semaphore.NewWeighted(limit)
	}
	background := context.Background()
	begin := time.Now()
	left.Add(tasks)
	for i := 0; i < tasks; i++ {
		permits := group[i%groups]
		go func() { permits.Acquire(background, 1); empty(); permits.Release(1); left.Done() }()
	}
	left.Wait()
	return begin
}

func w1Round(variant string) float64 {
	var begin time.Time
	switch variant {
	case "workers":
		begin = w1Workers(1024)
	case "workers16k":
		begin = w1Workers(16384)
	case "weighted":
		begin = w1Weighted()
	default:
		begin = w1Chan(variant == "chanout")
	}
	return float64(time.Since(begin).Nanoseconds()) / tasks
}

func w1(variant string) {
	var ns []float64
	for round := -warmUps; round < rounds; round++ {
		took := w1Round(variant)
		if round >= 0 {
			ns = append(ns, took)
		}
	}
	sort.Float64s(ns)
	fmt.Printf("RESULT w1 go-%s ns_per_task=%.1f peak_mb=%.1f\n", variant, ns[rounds/2], statusKB("VmHWM")/1024)
}

// ---- w2

func w2() {
	var left sync.WaitGroup
	permits := make(chan struct{}, 1)
	open := make(chan struct{})
	runtime.GC()
	before := statusKB("VmRSS")
	permits <- struct{}{}
	left.Add(tasks + 1)
	go func() { <-open; <-permits; left.Done() }()
	for i := 0; i < tasks; i++ {
		go func() { permits <- struct{}{}; empty(); <-permits; left.Done() }()
	}
	time.Sleep(settle)
	fmt.Printf("RESULT w2 go-chan bytes_each=%.1f\n", (statusKB("VmRSS")-before)*1024/tasks)
	close(open)
	left.Wait()
}

// ---- w3

// In chanout the flood has a submitter of its own, which waits for permits; else all of it is there at once.
func w3Flood(variant string) {
	steps := burnCalibrate()
	permits := make(chan struct{}, floodLimit)
	if variant == "chanout" {
		go func() {
			for i := 0; i < flood; i++ {
				permits <- struct{}{}
				go func() { burn(steps); <-permits }()
			}
		}()
		return
	}
	for i := 0; i < flood; i++ {
		go func() { permits <- struct{}{}; burn(steps); <-permits }()
	}
}

func percentile(us []float64, percent int) float64 {
	at := len(us) * percent / 100
	if at == len(us) {
		at--
	}
	return us[at]
}

func w3(variant string) {
	var left sync.WaitGroup
	left.Add(ticks)
	us, tickUs := make([]float64, ticks), make([]float64, ticks)
	permits := make(chan struct{}, floodLimit)
	w3Flood(variant)
	base := time.Now()
	for i := 0; i < ticks; i++ {
		i := i
		tick := base.Add(time.Duration(i+1) * tickEvery)
		time.Sleep(time.Until(tick))
		submitted := time.Now()
		go func() {
			permits <- struct{}{}
			started := time.Now()
			us[i] = float64(started.Sub(submitted)) / 1e3
			tickUs[i] = float64(started.Sub(tick)) / 1e3
			<-permits
			left.Done()
		}()
	}
	left.Wait()
	sort.Float64s(us)
	sort.Float64s(tickUs)
	fmt.Printf("RESULT w3 go-%s p50_us=%.1f p99_us=%.1f max_us=%.1f tick_p99_us=%.1f\n", variant,
		percentile(us, 50), percentile(us, 99), percentile(us, 100), percentile(tickUs, 99))
}

// ---- w4

type node struct {
	left atomic.Int32
	ups  int32
	next []*node
}

// The nodes before node i.
func flowEdges(i int, layered bool, luck *uint64) []int {
	if !layered {
		if i == 0 {
			return nil
		}
		return []int{i - 1}
	}
	if i < flowWidth {
		return nil
	}
	before := (i/flowWidth - 1) * flowWidth
	*luck = *luck*6364136223846793005 + 1442695040888963407
	x := int((*luck >> 33) % flowWidth)
	*luck = *luck*6364136223846793005 + 1442695040888963407
	y := (x + 1 + int((*luck>>33)%(flowWidth-1))) % flowWidth
	return []int{before + x, before + y}
}

func flowRun(all []*node) {
	var left sync.WaitGroup
	for _, n := range all {
		n.left.Store(n.ups)
	}
	left.Add(len(all))
	var run func(n *node)
	run = func(n *node) {
		for n != nil {
			empty()
			var inline *node
			for _, next := range n.next {
				if next.left.Add(-1) != 0 {
					continue
				}
				if inline == nil {
					inline = next
				} else {
					go run(next)
				}
			}
			left.Done()
			n = inline
		}
	}
	for _, n := range all {
		if n.ups == 0 {
			go run(n)
		}
	}
	left.Wait()
}

// Answers the time for a node, and for an edge while it is built.
func w4Shape(layered bool) (float64, float64) {
	begin := time.Now()
	all := make([]*node, flowNodes)
	luck, edges := uint64(12345), 0
	for i := range all {
		all[i] = &node{}
		for _, up := range flowEdges(i, layered, &luck) {
			all[up].next = append(all[up].next, all[i])
			all[i].ups++
			edges++
		}
	}
	edgeNs := float64(time.Since(begin).Nanoseconds()) / float64(edges)
	var ns []float64
	for round := -flowWarmUps; round < flowRounds; round++ {
		begin := time.Now()
		flowRun(all)
		if round >= 0 {
			ns = append(ns, float64(time.Since(begin).Nanoseconds())/flowNodes)
		}
	}
	sort.Float64s(ns)
	return ns[flowRounds/2], edgeNs
}

func w4() {
	runtime.GOMAXPROCS(flowWorkers)
	chain, _ := w4Shape(false)
	layered, edgeNs := w4Shape(true)
	fmt.Printf("RESULT w4 go-counter chain_ns=%.1f layered_ns=%.1f build_ns_per_edge=%.1f\n", chain, layered, edgeNs)
}

func main() {
	if len(os.Args) != 3 {
		os.Exit(2)
	}
	switch os.Args[1] {
	case "w1":
		w1(os.Args[2])
	case "w2":
		w2()
	case "w3":
		w3(os.Args[2])
	case "w4":
		w4()
	default:
		os.Exit(2)
	}
}
