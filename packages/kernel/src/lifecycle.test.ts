import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it, vi } from 'vitest'
import { TestClock } from './clock.ts'
import { isThvError } from './errors.ts'
import { createLifecycle, linkSignals } from './lifecycle.ts'

const hang = () => new Promise<void>(() => undefined)

describe('createLifecycle', () => {
  it('aborts its signal first, then runs the hooks in reverse order, one after the other', async () => {
    const clock = new TestClock()
    const lifecycle = createLifecycle({ clock })
    const log: string[] = []
    lifecycle.signal.addEventListener('abort', () => log.push('signal'))
    for (const name of ['first', 'second', 'third']) {
      lifecycle.onShutdown(name, async () => {
        log.push(`${name} begins`)
        await clock.sleep(10)
        log.push(`${name} ends`)
      })
    }
    const shutdown = lifecycle.shutdown('test')
    await clock.advance(30)
    expect(await shutdown).toEqual({
      reason: 'test',
      durationMs: 30,
      clean: true,
      hooks: ['third', 'second', 'first'].map((name) => ({ name, outcome: 'done', durationMs: 10 })),
    })
    expect(log).toEqual(['signal', ...['third', 'second', 'first'].flatMap((name) => [`${name} begins`, `${name} ends`])])
    expect(isThvError(lifecycle.signal.reason, 'aborted')).toBe(true)
    expect(lifecycle.signal.reason).toHaveProperty('message', 'shutting down: test')
    expect(clock.pending).toBe(0)
  })

  it('returns the same promise to every caller, also to one that listens on the signal', async () => {
    const lifecycle = createLifecycle()
    const hook = vi.fn()
    lifecycle.onShutdown('once', hook)
    let fromListener: unknown
    lifecycle.signal.addEventListener('abort', () => {
      fromListener = lifecycle.shutdown('listener')
    })
    const first = lifecycle.shutdown('first')
    expect(lifecycle.shutdown('second')).toBe(first)
    expect(fromListener).toBe(first)
    expect((await first).reason).toBe('first')
    expect(hook).toHaveBeenCalledOnce()
  })

  it('goes on after a hook that throws, rejects or hangs', async () => {
    const clock = new TestClock()
    const lifecycle = createLifecycle({ clock, drainMs: 1_000 })
    const last = vi.fn()
    let reason: unknown
    lifecycle.onShutdown('last', last)
    lifecycle.onShutdown(
      'hangs',
      (signal) => {
        signal.addEventListener('abort', () => {
          reason = signal.reason
        })
        return hang()
      },
      { timeoutMs: 100 },
    )
    lifecycle.onShutdown('rejects', async () => Promise.reject(new Error('no', { cause: 'why' })))
    lifecycle.onShutdown('throws', () => {
      throw new Error('at once')
    })
    const shutdown = lifecycle.shutdown()
    await clock.advance(100)
    const report = await shutdown
    expect(report.clean).toBe(false)
    expect(report.hooks).toEqual([
      { name: 'throws', outcome: 'failed', error: 'at once', durationMs: 0 },
      { name: 'rejects', outcome: 'failed', error: 'no: why', durationMs: 0 },
      { name: 'hangs', outcome: 'timeout', durationMs: 100 },
      { name: 'last', outcome: 'done', durationMs: 0 },
    ])
    expect(last).toHaveBeenCalledOnce()
    expect(isThvError(reason, 'shutdown_timeout')).toBe(true)
  })

  it('limits the time of each hook by what is left of the drain time', async () => {
    const clock = new TestClock()
    const lifecycle = createLifecycle({ clock, drainMs: 100 })
    lifecycle.onShutdown('too late', hang)
    lifecycle.onShutdown('quick but late', async (signal) => {
      await Promise.resolve()
      expect(signal.aborted).toBe(true)
    })
    lifecycle.onShutdown('greedy', hang, { timeoutMs: 500 })
    lifecycle.onShutdown('slow', () => clock.sleep(70), { timeoutMs: 80 })
    const shutdown = lifecycle.shutdown()
    await clock.advance(100)
    const report = await shutdown
    expect(report.hooks.map((hook) => [hook.name, hook.outcome, hook.durationMs])).toEqual([
      ['slow', 'done', 70],
      ['greedy', 'timeout', 30],
      ['quick but late', 'done', 0],
      ['too late', 'timeout', 0],
    ])
    expect(report.durationMs).toBe(100)
  })

  it('does not abort the signal of a hook that ends in time, and leaves no unhandled rejection of one that does not', async () => {
    const clock = new TestClock()
    const lifecycle = createLifecycle({ clock })
    let inTime: AbortSignal | undefined
    lifecycle.onShutdown('rejects too late', () => clock.sleep(50).then(() => Promise.reject(new Error('late'))), { timeoutMs: 10 })
    lifecycle.onShutdown('in time', (signal) => {
      inTime = signal
    })
    const shutdown = lifecycle.shutdown()
    await clock.advance(60_000)
    expect((await shutdown).hooks.map((hook) => hook.outcome)).toEqual(['done', 'timeout'])
    expect(inTime?.aborted).toBe(false)
  })

  it('runs a hook that is registered during shutdown next, and refuses one that comes after its end', async () => {
    const lifecycle = createLifecycle()
    const log: string[] = []
    lifecycle.onShutdown('a', () => void log.push('a'))
    lifecycle.onShutdown('b', () => {
      log.push('b')
      lifecycle.onShutdown('born late', () => void log.push('born late'))
    })
    await lifecycle.shutdown()
    expect(log).toEqual(['b', 'born late', 'a'])
    expect(() => lifecycle.onShutdown('c', () => undefined)).toThrow(expect.objectContaining({ code: 'aborted' }))
  })

  it('refuses limits that are not a time', () => {
    expect(() => createLifecycle({ drainMs: Number.NaN })).toThrow(RangeError)
    expect(() => createLifecycle().onShutdown('x', () => undefined, { timeoutMs: -1 })).toThrow(RangeError)
  })
})

describe('linkSignals', () => {
  it('aborts with the reason of the first to abort', () => {
    const [a, b] = [new AbortController(), new AbortController()]
    const linked = linkSignals(a.signal, undefined, b.signal)
    expect(linked.aborted).toBe(false)
    b.abort('b')
    a.abort('a')
    expect([linked.aborted, linked.reason]).toEqual([true, 'b'])
  })

  it('is aborted from the start when one of them is', () => {
    expect(linkSignals(new AbortController().signal, AbortSignal.abort('before')).reason).toBe('before')
  })

  it('returns a single signal itself, and one that never aborts for none', () => {
    const { signal } = new AbortController()
    expect(linkSignals(undefined, signal)).toBe(signal)
    expect(linkSignals().aborted).toBe(false)
    expect(linkSignals(undefined).aborted).toBe(false)
  })

  it('leaves nothing behind on a long-lived signal', async () => {
    const longLived = new AbortController()
    const links: WeakRef<AbortSignal>[] = []
    for (let i = 0; i < 100; i++) {
      const linked = linkSignals(longLived.signal, new AbortController().signal)
      const listener = () => undefined
      linked.addEventListener('abort', listener)
      linked.removeEventListener('abort', listener)
      links.push(new WeakRef(linked))
    }
    const alive = () => links.filter((link) => link.deref() !== undefined).length
    const gc = garbageCollector()
    for (let attempt = 0; attempt < 50 && alive() > 5; attempt++) {
      await new Promise((resolve) => setTimeout(resolve, 5))
      gc()
    }
    expect(alive()).toBeLessThanOrEqual(5) // the engine may hold on to a few
    expect(longLived.signal.aborted).toBe(false)
  })
})

function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  setFlagsFromString('--no-expose-gc')
  return gc
}
