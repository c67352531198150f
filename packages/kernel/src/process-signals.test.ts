import { EventEmitter } from 'node:events'
import { describe, expect, it, vi } from 'vitest'
import { TestClock } from './clock.ts'
import { ThvError } from './errors.ts'
import { createLifecycle, type Lifecycle } from './lifecycle.ts'
import { handleSignals, type Main, type ProcessLike, runMain } from './process-signals.ts'

class FakeProcess extends EventEmitter implements ProcessLike {
  readonly exit = vi.fn<(code: number) => void>()
}

const hang = () => new Promise<void>(() => undefined)
const untilAborted = ({ signal }: Lifecycle) =>
  new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))

function start(main: Main, drainMs = 1_000) {
  const clock = new TestClock()
  const proc = new FakeProcess()
  const lines: string[] = []
  const lifecycle = createLifecycle({ clock, drainMs })
  const ended = runMain(main, { lifecycle, proc, printError: (line) => lines.push(line) })
  return { clock, proc, lines, lifecycle, ended }
}

describe('runMain', () => {
  it('shuts down and exits with 0 when main returns, and leaves no listener behind', async () => {
    const closed = vi.fn()
    const { proc, lines, ended } = start(async (lifecycle) => lifecycle.onShutdown('server', closed))
    expect([proc.listenerCount('SIGTERM'), proc.listenerCount('SIGINT')]).toEqual([1, 1])
    await ended
    expect(closed).toHaveBeenCalledOnce()
    expect(proc.exit.mock.calls).toEqual([[0]])
    expect(lines).toEqual([])
    expect([proc.listenerCount('SIGTERM'), proc.listenerCount('SIGINT')]).toEqual([0, 0])
  })

  it.each([
    ['the number that main returns', async () => 3, 3, []],
    [
      '1 and one line when main fails',
      async () => Promise.reject(new Error('no port', { cause: 'EADDRINUSE' })),
      1,
      ['no port: EADDRINUSE'],
    ],
    ['2 for a usage error', async () => Promise.reject(new ThvError('usage', 'unknown flag --x')), 2, ['unknown flag --x']],
    ['1 for aborted without shutdown', async () => Promise.reject(new ThvError('aborted', 'gave up')), 1, ['gave up']],
  ] as [string, Main, number, string[]][])('exits with %s', async (_, main, code, printed) => {
    const { proc, lines, ended } = start(main)
    await ended
    expect(proc.exit.mock.calls).toEqual([[code]])
    expect(lines).toEqual(printed)
  })

  it('exits with 1 when a main throws at once', async () => {
    const { proc, ended } = start(() => {
      throw new Error('at once')
    })
    await ended
    expect(proc.exit.mock.calls).toEqual([[1]])
  })

  it('drains on a signal: hooks first, main last, and main ending as aborted is no failure', async () => {
    const { proc, lines, lifecycle, ended } = start(async (own) => {
      own.onShutdown('server', () => undefined)
      await untilAborted(own)
    })
    proc.emit('SIGTERM')
    await ended
    const report = await lifecycle.shutdown()
    expect(report.reason).toBe('SIGTERM')
    expect(report.hooks.map((hook) => [hook.name, hook.outcome])).toEqual([
      ['server', 'done'],
      ['main', 'done'],
    ])
    expect(proc.exit.mock.calls).toEqual([[0]])
    expect(lines).toEqual([])
  })

  it('reports a failure of main that is not the stop itself, also after a signal', async () => {
    const { proc, lines, ended } = start(async (own) => {
      await untilAborted(own).catch(() => undefined)
      throw new Error('data lost')
    })
    proc.emit('SIGINT')
    await ended
    expect(proc.exit.mock.calls).toEqual([[1]])
    expect(lines).toEqual(['data lost'])
  })

  it('exits with 1 and says who is to blame when the drain time runs out', async () => {
    const { clock, proc, lines, ended } = start(async (own) => {
      own.onShutdown('broken', () => Promise.reject(new Error('disk full')))
      await hang()
    }, 500)
    proc.emit('SIGTERM')
    await clock.advance(500)
    await ended
    expect(proc.exit.mock.calls).toEqual([[1]])
    expect(lines).toEqual(['shutdown: broken failed: disk full', 'shutdown: main still running after 500 ms'])
  })

  it.each([
    ['SIGINT', 'SIGINT', 130],
    ['SIGTERM', 'SIGTERM', 143],
    ['SIGTERM', 'SIGINT', 130],
  ] as const)('exits at once on %s then %s, with %d', async (first, second, code) => {
    const { proc, clock, ended } = start(hang)
    proc.emit(first)
    expect(proc.exit).not.toHaveBeenCalled()
    proc.emit(second)
    expect(proc.exit.mock.calls).toEqual([[code]])
    await clock.advance(1_000)
    await ended
  })
})

describe('handleSignals', () => {
  it('listens until disposed', () => {
    const proc = new FakeProcess()
    const lifecycle = createLifecycle()
    handleSignals(lifecycle, proc)[Symbol.dispose]()
    proc.emit('SIGTERM')
    expect(lifecycle.signal.aborted).toBe(false)
  })
})
