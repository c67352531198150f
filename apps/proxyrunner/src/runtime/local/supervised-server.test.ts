import { createServer, type Server } from 'node:net'
import { systemClock } from '@thv/kernel/clock'
import { type Child, startChild } from '@thv/programs/child-process'
import { createProcessGuard, type ProcessGuard } from '@thv/programs/process-guard'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually, isAlive, type MemoryLog, memoryLog } from '../testing/runtime-fixtures.ts'
import { freePort } from './local-port.ts'
import { superviseServer } from './supervised-server.ts'

const LISTEN =
  'require("node:http").createServer((q, s) => q.url === "/crash" ? process.exit(5) : s.end("hi")).listen(+process.env.PORT, "127.0.0.1")'

describe('superviseServer', () => {
  let guard: ProcessGuard
  let log: MemoryLog
  let stop: AbortController
  let port: number
  const started: Child[] = []
  beforeEach(async () => {
    log = memoryLog()
    guard = createProcessGuard((message) => log.warn(message))
    stop = new AbortController()
    port = await freePort()
    started.length = 0
  })
  afterEach(async () => {
    stop.abort()
    await guard.close()
  })

  const supervise = (script = LISTEN, stableMs = 60_000) =>
    superviseServer(
      {
        name: 'demo',
        port,
        start: async () => {
          const options = { name: 'demo', env: { PORT: String(port) }, stdio: 'log', guard, log } as const
          const child = await startChild({ file: process.execPath, args: ['-e', script] }, options)
          started.push(child)
          return child
        },
        log,
        clock: systemClock,
        backoff: { baseMs: 20, maxMs: 100 },
        stableMs,
      },
      stop.signal,
    )

  it('is ready when the server listens, and stops with the signal', async () => {
    const server = supervise()
    expect(server.url.href).toBe(`http://127.0.0.1:${port}/`)
    const seen: string[] = []
    server.onChange(() => seen.push(server.state.message))
    await eventually('it is ready', () => server.state.ready)
    expect(server.state).toMatchObject({ generation: 1, message: expect.stringContaining(`listens on port ${port} since`) })
    expect(await (await fetch(server.url)).text()).toBe('hi')
    expect(seen.some((message) => message.includes('does not listen on port'))).toBe(true)
    stop.abort()
    await server.done
    expect(server.state).toMatchObject({ ready: false, message: 'demo was stopped' })
    expect(isAlive(started[0]?.pid ?? 0)).toBe(false)
  })

  it('starts a crashed server again, under another generation', async () => {
    const server = supervise()
    await eventually('it is ready', () => server.state.ready)
    await fetch(new URL('/crash', server.url)).catch(() => undefined)
    await eventually('the second one is ready', () => server.state.ready && server.state.generation === 2)
    expect(log.text()).toMatch(/demo ended with code 5; next start in .* s \(failure 1\)/)
  })

  it('waits longer after each crash, and the shortest time again after a stable run', async () => {
    const failing = supervise('process.exit(3)')
    await eventually('three failures', () => failing.state.message.includes('(failure 3)'))
    expect(failing.state).toMatchObject({ ready: false, generation: 3 })
    stop.abort()
    await failing.done

    stop = new AbortController()
    log.lines.length = 0
    const stable = supervise(LISTEN, 0)
    for (const generation of [1, 2, 3]) {
      await eventually(`ready ${generation}`, () => stable.state.ready && stable.state.generation === generation)
      await fetch(new URL('/crash', stable.url)).catch(() => undefined)
    }
    await eventually('the third crash was seen', () => log.text().split('(failure 1)').length === 4)
  })

  it('does not take another process at the port for the server', async () => {
    const other: Server = createServer().listen(port, '127.0.0.1')
    await eventually('the other listens', () => other.listening)
    const server = supervise()
    await eventually('it is said', () => server.state.message.includes(`port ${port} is in use by another process`))
    expect([server.state.ready, started.length]).toEqual([false, 0])
    await new Promise((resolve) => other.close(resolve))
    await eventually('it is ready', () => server.state.ready)
  })

  it('says why it cannot be started, and tries again', async () => {
    let tries = 0
    const server = superviseServer(
      {
        name: 'demo',
        port,
        start: () => Promise.reject(new Error(`no network (${++tries})`)),
        log,
        clock: systemClock,
        backoff: { baseMs: 5, maxMs: 5 },
      },
      stop.signal,
    )
    await eventually('several tries', () => log.text().includes('no network (3); next start in'))
    stop.abort()
    await server.done
    expect(tries).toBeGreaterThanOrEqual(3)
  })

  it('stops a server that never listens', async () => {
    const server = supervise('setInterval(() => {}, 1000)')
    await eventually('it was started', () => started.length === 1)
    stop.abort()
    await server.done
    expect(isAlive(started[0]?.pid ?? 0)).toBe(false)
  })
})
