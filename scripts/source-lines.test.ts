import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const LIMIT_MS = 60_000
/** Line 4 makes all errors. */
const PROGRAM = `
import { Readable } from 'node:stream'
import { Worker } from 'node:worker_threads'
const make = (message: string, cause?: unknown): Error => new Error(message, { cause })
const fail: Readonly<Record<string, () => unknown>> = {
  caught: () => {
    const stream = new Readable({ read() {} }).on('error', ({ stack }) => console.error(stack))
    stream.destroy(make('of a stream'))
    const aborted = new AbortController()
    aborted.signal.addEventListener('abort', () => console.error(aborted.signal.reason.stack))
    aborted.abort(make('of an abort'))
  },
  thrown: () => { throw make('it is not caught', make('its cause')) },
  rejected: () => void Promise.reject(make('it is not caught')),
  handled: () => {
    process.on('uncaughtException', (error) => console.error(error))
    setImmediate(() => console.error('it goes on'))
    throw make('the program goes on')
  },
  frozen: () => { throw Object.freeze(make('its stack cannot be replaced')) },
  text: () => { throw 'no error at all' },
  long: () => { throw make('at file://x'.repeat(100_000)) },
  many: () => {
    const nested = Array.from({ length: 1_000 }, (_, index) => make('number ' + index))
    throw new AggregateError(nested, 'many')
  },
  worker: () => { new Worker(new URL(import.meta.url), { argv: ['thrown'] }).on('error', ({ stack }) => console.error(stack)) },
}
fail[process.argv[2] ?? '']?.()
`

describe('lines of the sources', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'thv-lines-'))
    writeFileSync(join(folder, 'real.ts'), PROGRAM)
    buildSync({
      ...{ entryPoints: [join(folder, 'real.ts')], bundle: true, format: 'esm', platform: 'node', sourcemap: 'linked' },
      outfile: join(folder, 'out', 'bundle.mjs'),
      inject: [fileURLToPath(new URL('source-lines.mjs', import.meta.url))],
    })
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  /** Error output of the program, and the maps that it reads. */
  function run(how: string, nodeArgs: readonly string[] = []) {
    const hook = fileURLToPath(new URL('testing/print-loaded.mjs', import.meta.url))
    const args = [...nodeArgs, '--import', hook, join(folder, 'out', 'bundle.mjs'), how]
    const { stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: LIMIT_MS, maxBuffer: 64 * 1024 * 1024 })
    const lines = stderr.split('\n')
    const maps = lines.filter((line) => line.startsWith('read '))
    return { status, maps, text: lines.filter((line) => !/^(?:loaded|read) /.test(line)).join('\n') }
  }

  it('are not looked up for an error that something catches, not even when its stack is read', () => {
    const { text, maps, status } = run('caught')
    expect(status).toBe(0)
    for (const message of ['of a stream', 'of an abort'])
      expect(text).toMatch(new RegExp(`^Error: ${message}\\n {4}at make \\(file:\\S+/bundle\\.mjs:\\d+:\\d+\\)`, 'm'))
    expect(maps).toEqual([])
  })

  it.each(['thrown', 'rejected'])('are in the trace of an uncaught error, and its map is read once: %s', (how) => {
    const { text, maps, status } = run(how)
    expect(status).toBe(1)
    expect(text).toMatch(/^Error: it is not caught\n {4}at make \(real\.ts:4:\d+\)$/m)
    if (how === 'thrown') expect(text).toMatch(/Error: its cause\n +at make \(real\.ts:4:\d+\)$/m)
    expect(maps).toHaveLength(1)
  })

  it('are in what a handler of the program prints, and the program goes on', () => {
    const { text, status } = run('handled')
    expect(status).toBe(0)
    expect(text).toMatch(/^Error: the program goes on\n {4}at make \(real\.ts:4:\d+\)$/m)
    expect(text).toContain('it goes on')
  })

  it('are in the error that a worker ends with', () => {
    expect(run('worker').text).toMatch(/^Error: it is not caught\n {4}at make \(real\.ts:4:\d+\)$/m)
  })

  it.each(['frozen', 'text', 'long', 'many'])('change neither message nor exit code where the error is unusual: %s', (how) => {
    const { text, status } = run(how)
    expect(status).toBe(1)
    expect(text).toMatch(/its stack cannot be replaced|no error at all|at file:\/\/x|AggregateError: many/)
  })

  it('are left to Node where it looks them up itself', () => {
    const { text, maps } = run('thrown', ['--enable-source-maps'])
    expect(text).toMatch(/Error: it is not caught\n {4}at make \(\S*real\.ts:4:\d+\)$/m)
    expect(maps).toEqual([])
  })
})
