import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { isThvError } from '@thv/kernel/errors'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ChildOptions, startChild } from './child-process.ts'
import { createProcessGuard, type ProcessGuard } from './process-guard.ts'
import { eventually, isAlive, type MemoryLog, memoryLog } from './testing/program-fixtures.ts'

let guard: ProcessGuard
let log: MemoryLog
beforeEach(() => {
  log = memoryLog()
  guard = createProcessGuard((message) => log.warn(message))
})
afterEach(() => guard.close())

const node = (script: string, more: Partial<ChildOptions> = {}) =>
  startChild({ file: process.execPath, args: ['-e', script] }, { name: 'demo', env: { A: '1' }, stdio: 'protocol', guard, log, ...more })

/** Long enough for a loaded machine wherever the step is expected to work, short where it is expected not to. */
const FOREVER = 30_000
const SOON = 50

describe('startChild', () => {
  it('gives the child its environment and nothing else, and the caller its pipes', async () => {
    const child = await node('process.stdin.pipe(process.stdout); process.stdout.write(Object.keys(process.env).join() + "\\n")')
    child.stdin?.end('hello')
    expect(await text(child.stdout ?? Readable.from([]))).toBe('A\nhello')
    expect(await child.ended).toEqual({ code: 0, message: 'demo ended with code 0' })
  })

  it('writes what the child prints to stderr into the log', async () => {
    const child = await node('console.error("first"); console.error("second"); process.exit(3)')
    expect(await child.ended).toEqual({ code: 3, message: 'demo ended with code 3' })
    await eventually('both lines are in the log', () => log.text() === 'first\nsecond')
    expect(log.lines[0]?.fields).toEqual({ from: 'stderr', pid: child.pid })
  })

  it('has no pipes for the caller with stdio log: stdout goes to the log too', async () => {
    const child = await node('process.stdin.on("end", () => console.log("no input")).resume()', { stdio: 'log' })
    expect([child.stdin, child.stdout]).toEqual([null, null])
    await child.ended
    await eventually('the line is in the log', () => log.text() === 'no input')
  })

  it('says why a program cannot be started', async () => {
    const error = await startChild({ file: '/nowhere/program', args: [] }, { name: 'demo', env: {}, stdio: 'protocol', guard, log }).catch(
      (e: unknown) => e,
    )
    expect(isThvError(error, 'process_start_failed')).toBe(true)
    expect(String(error)).toContain('demo could not be started (ENOENT)')
  })

  it('stops by end of input first', async () => {
    const child = await node('process.stdin.on("end", () => process.exit(7)).resume()', { limits: { eofMs: FOREVER } })
    await child.stop()
    expect(await child.ended).toMatchObject({ code: 7 })
  })

  it('then by SIGTERM', async () => {
    const child = await node('process.on("SIGTERM", () => process.exit(8)); setInterval(() => {}, 1000); console.log("up")', {
      limits: { eofMs: SOON, termMs: FOREVER },
    })
    await once(child.stdout ?? process, 'data')
    await child.stop()
    expect(await child.ended).toMatchObject({ code: 8 })
  })

  it('then by SIGKILL', async () => {
    const child = await node('process.on("SIGTERM", () => {}); setInterval(() => {}, 1000); console.log("up")', {
      limits: { eofMs: SOON, termMs: SOON, killMs: FOREVER },
    })
    await once(child.stdout ?? process, 'data')
    await Promise.all([child.stop(), child.stop()])
    expect(await child.ended).toEqual({ signal: 'SIGKILL', message: 'demo was ended by SIGKILL' })
    expect(log.lines).toEqual([])
  })

  it('takes along what the child has started', async () => {
    const child = await node(
      `const c = require('node:child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
       console.log(c.pid); process.stdin.on('end', () => process.exit()).resume()`,
    )
    const [chunk] = (await once(child.stdout ?? process, 'data')) as [Buffer]
    const grandchild = Number(chunk.toString())
    expect(isAlive(grandchild)).toBe(true)
    await child.stop()
    await eventually('the grandchild is gone', () => !isAlive(grandchild))
  })

  it('bears writes to a child that is gone', async () => {
    const child = await node('process.exit(0)')
    await child.ended
    child.stdin?.write('x'.repeat(100_000))
    await child.stop()
    await eventually('the pipe is closed', () => child.stdin?.destroyed === true)
    expect(await child.ended).toMatchObject({ code: 0 })
  })
})

describe('createProcessGuard', () => {
  const runner = (body: string) => {
    const module = new URL('./process-guard.ts', import.meta.url).href
    const script = `
      import { spawn } from 'node:child_process'
      import { createProcessGuard } from ${JSON.stringify(module)}
      const guard = createProcessGuard(() => {})
      const start = () => {
        const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, stdio: 'ignore' })
        child.unref()
        return child.pid
      }
      ${body}`
    return spawn(process.execPath, ['--input-type=module-typescript', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  }
  const pidsOf = async (child: ReturnType<typeof runner>): Promise<number[]> => {
    const [chunk] = (await once(child.stdout, 'data')) as [Buffer]
    return JSON.parse(chunk.toString()) as number[]
  }

  it('kills the groups when its process is killed, except those that were forgotten', async () => {
    const child = runner(`
      const [a, b, c] = [start(), start(), start()]
      for (const pid of [a, b, c]) guard.watch(pid)
      guard.forget(b)
      setInterval(() => {}, 1000)
      console.log(JSON.stringify([a, b, c]))`)
    const [a = 0, b = 0, c = 0] = await pidsOf(child)
    try {
      expect([a, b, c].map(isAlive)).toEqual([true, true, true])
      child.kill('SIGKILL')
      await eventually('the two watched ones are gone', () => !isAlive(a) && !isAlive(c))
      expect(isAlive(b)).toBe(true)
    } finally {
      process.kill(b, 'SIGKILL')
    }
  })

  it('does not keep its process alive, and kills when that simply ends', async () => {
    const child = runner(`
      const pid = start()
      guard.watch(pid)
      console.log(JSON.stringify([pid]))`)
    const [pid = 0] = await pidsOf(child)
    await once(child, 'exit')
    await eventually('the child is gone', () => !isAlive(pid))
    expect(pid).toBeGreaterThan(0)
  })

  it('kills at close, and refuses what is no process group', async () => {
    const sleeper = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, stdio: 'ignore' })
    const own = createProcessGuard(() => {})
    own.watch(sleeper.pid ?? 0)
    expect(() => own.watch(1)).toThrow(RangeError)
    expect(() => own.watch(Number.NaN)).toThrow(RangeError)
    const [[, signal]] = await Promise.all([once(sleeper, 'exit'), own.close()])
    expect(signal).toBe('SIGKILL')
  })
})
