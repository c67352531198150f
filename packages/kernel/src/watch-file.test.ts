import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Clock, systemClock } from './clock.ts'
import { type FileWatch, watchFile } from './watch-file.ts'

let folder: string
let watch: FileWatch | undefined
let calls: number
/** Times that it has looked at the file. */
let looks: number

const clock: Clock = {
  ...systemClock,
  sleep: (ms, signal) => {
    looks++
    return systemClock.sleep(ms, signal)
  },
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'watch-file-'))
  calls = 0
  looks = 0
})

afterEach(async () => {
  await watch?.[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const at = (...parts: string[]) => join(folder, ...parts)

function start(path: string, options: { pollMs?: number; onChange?: () => Promise<void> } = {}): void {
  const onChange =
    options.onChange ??
    (async () => {
      calls++
    })
  watch = watchFile({ path, clock, onChange, onError: () => {}, debounceMs: 20, pollMs: options.pollMs ?? 3_600_000 })
}

describe('watchFile', () => {
  it('notices a file that is rewritten, replaced by a rename, removed and restored', async () => {
    writeFileSync(at('config.yaml'), 'a')
    start(at('config.yaml'))
    writeFileSync(at('config.yaml'), 'b')
    await vi.waitUntil(() => calls === 1, { timeout: 30_000, interval: 5 })
    writeFileSync(at('next'), 'c')
    await vi.waitUntil(() => calls === 2, { timeout: 30_000, interval: 5 }) // something has changed in the folder: the reader sees that it is not the file
    renameSync(at('next'), at('config.yaml'))
    await vi.waitUntil(() => calls === 3, { timeout: 30_000, interval: 5 })
    unlinkSync(at('config.yaml'))
    await vi.waitUntil(() => calls === 4, { timeout: 30_000, interval: 5 })
    writeFileSync(at('config.yaml'), 'd')
    await vi.waitUntil(() => calls === 5, { timeout: 30_000, interval: 5 })
    expect(looks).toBeGreaterThan(0)
  })

  it('notices the links of a ConfigMap being swapped', async () => {
    mkdirSync(at('..2026_1'))
    writeFileSync(at('..2026_1', 'config.yaml'), 'a')
    symlinkSync('..2026_1', at('..data'))
    symlinkSync(join('..data', 'config.yaml'), at('config.yaml'))
    start(at('config.yaml'))
    mkdirSync(at('..2026_2'))
    writeFileSync(at('..2026_2', 'config.yaml'), 'b')
    symlinkSync('..2026_2', at('..data_tmp'))
    renameSync(at('..data_tmp'), at('..data'))
    await vi.waitUntil(() => calls >= 1, { timeout: 30_000, interval: 5 })
    expect(readFileSync(at('config.yaml'), 'utf8')).toBe('b')
  })

  it('looks now and then at what a link leads to', async () => {
    mkdirSync(at('elsewhere'))
    writeFileSync(at('elsewhere', 'config.yaml'), 'a')
    mkdirSync(at('here'))
    symlinkSync(at('elsewhere', 'config.yaml'), at('here', 'config.yaml'))
    start(at('here', 'config.yaml'), { pollMs: 20 })
    await vi.waitUntil(() => looks > 1, { timeout: 30_000, interval: 5 })
    expect(calls).toBe(0)
    writeFileSync(at('next'), 'longer')
    renameSync(at('next'), at('elsewhere', 'config.yaml')) // in one step: the look that goes on meanwhile must not see half of it
    await vi.waitUntil(() => calls === 1, { timeout: 30_000, interval: 5 })
  })

  it('calls once at a time, and once more for what happened meanwhile', async () => {
    writeFileSync(at('config.yaml'), 'a')
    let running = 0
    let most = 0
    const gate = Promise.withResolvers<void>()
    start(at('config.yaml'), {
      onChange: async () => {
        calls++
        most = Math.max(most, ++running)
        await gate.promise
        running--
      },
    })
    watch?.trigger()
    watch?.trigger()
    watch?.trigger()
    await vi.waitUntil(() => calls === 1, { timeout: 30_000, interval: 5 })
    gate.resolve()
    await vi.waitUntil(() => calls === 2 && running === 0, { timeout: 30_000, interval: 5 })
    expect(most).toBe(1)
  })

  it('goes on after a failure, and without a folder to watch', async () => {
    const errors: string[] = []
    watch = watchFile({
      path: at('none', 'config.yaml'),
      clock,
      onChange: async () => {
        calls++
        throw new Error('boom')
      },
      onError: (message) => errors.push(message),
      debounceMs: 5,
      pollMs: 20,
    })
    await vi.waitUntil(() => looks > 0, { timeout: 30_000, interval: 5 })
    // In one step each, too.
    mkdirSync(at('next'))
    writeFileSync(at('next', 'config.yaml'), 'a')
    renameSync(at('next'), at('none'))
    await vi.waitUntil(() => calls === 1, { timeout: 30_000, interval: 5 })
    writeFileSync(at('config.yaml'), 'longer')
    renameSync(at('config.yaml'), at('none', 'config.yaml'))
    await vi.waitUntil(() => calls === 2, { timeout: 30_000, interval: 5 })
    expect(errors[0]).toContain('cannot be watched')
    expect(errors.slice(1)).toEqual(['boom', 'boom'])
  })
})
