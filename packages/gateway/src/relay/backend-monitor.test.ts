import type { Target } from '@thv/http/outbound/outbound'
import { TestClock } from '@thv/kernel/clock'
import type { Log } from '@thv/telemetry/log'
import { describe, expect, it } from 'vitest'
import type { BackendClient } from './backend-client.ts'
import { BackendMonitor } from './backend-monitor.ts'

function watching(answers: () => boolean) {
  const clock = new TestClock()
  const warnings: unknown[][] = []
  const looks: number[] = []
  const log = { info: () => {}, error: () => {}, debug: () => {}, warn: (...line: unknown[]) => void warnings.push(line) }
  const stop = new AbortController()
  const target: Target = {
    origin: 'http://server:3001',
    seenOrigin: 'http://server:3001',
    async send(_request, sink) {
      looks.push(clock.monotonic())
      if (!answers()) throw new Error('refused')
      sink.start(405, {}, { pause: () => {}, resume: () => {} })
      sink.end()
    },
  }
  const backend = { target, address: { origin: 'http://server:3001' } } as unknown as BackendClient
  const options = { intervalMs: 10_000, timeoutMs: 1_000, threshold: 3, watches: true, era: 'legacy' } as const
  const monitor = new BackendMonitor({ backend, clock, log: log as unknown as Log, ...options })
  const done = monitor.run(stop.signal)
  const end = async () => {
    stop.abort()
    await done
  }
  return { clock, warnings, looks, monitor, stop: end }
}

describe('a backend that has not answered yet', () => {
  it('is looked for every second, however long it takes', async () => {
    let isThere = false
    const { clock, looks, monitor, stop } = watching(() => isThere)
    for (let second = 0; second < 30; second++) await clock.advance(1_000)
    expect(monitor.state.alive).toBe(false)
    expect(looks.length).toBeGreaterThanOrEqual(25)
    isThere = true
    await clock.advance(1_000)
    expect(monitor.state.alive).toBe(true)
    const before = looks.length
    await clock.advance(8_000)
    expect(looks.length).toBe(before) // then at its interval
    await stop()
  })

  it('is a problem with its port after five seconds, and no more once it answers or another process has started', async () => {
    let isThere = false
    const { clock, monitor, stop } = watching(() => isThere)
    for (let second = 0; second < 3; second++) await clock.advance(1_000)
    expect(monitor.state.problem).toBeUndefined()
    for (let second = 0; second < 5; second++) await clock.advance(1_000)
    expect(monitor.state.problem).toEqual({ reason: 'BackendPortClosed', message: 'Nothing listens on port 3001 of the MCP server.' })
    monitor.restarted()
    await clock.advance(1_000)
    expect(monitor.state.problem).toBeUndefined()
    for (let second = 0; second < 8; second++) await clock.advance(1_000)
    expect(monitor.state.problem?.reason).toBe('BackendPortClosed')
    isThere = true
    await clock.advance(1_000)
    expect(monitor.state).toMatchObject({ alive: true, problem: undefined })
    await stop()
  })

  it('is logged once, with the address', async () => {
    const { clock, warnings, stop } = watching(() => false)
    for (let second = 0; second < 60; second++) await clock.advance(1_000)
    expect(warnings).toEqual([[expect.stringContaining('is this the port that the server listens on?'), { address: 'http://server:3001' }]])
    await stop()
  })
})
