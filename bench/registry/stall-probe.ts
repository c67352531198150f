import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

/*
 * Loaded before a measured program (`node --import`): writes the longest stall of the main thread's event loop since the last
 * time, with the number of the question, to standard error whenever it gets SIGUSR2.
 */

const RESOLUTION_MS = 5

if (isMainThread) {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  let asked = 0
  delays.enable()
  process.on('SIGUSR2', () => {
    const ms = delays.max / 1e6 - RESOLUTION_MS
    process.stderr.write(`stall ${++asked}: ${Math.max(0, ms).toFixed(1)} ms\n`)
    delays.reset()
  })
}
