import { realpathSync } from 'node:fs'
import { fixtureCommand, spawnFixture } from '@thv/testkit/mcp/fixture-process'
import { isCi } from '@thv/testkit/run/run-environment'
import { describe, expect, it } from 'vitest'
import { type RunnerOptions, type Subject, startRunner } from '../../bench/proxy/subjects.ts'
import { startVmcp, vmcpConfig } from '../../bench/vmcp/subjects.ts'
import { SEEDS, type Seed } from './fuzz-corpus.ts'
import { bytesOf, setHeader } from './fuzz-request.ts'
import { type FuzzCounts, type Problem, runFuzz, sendGood } from './fuzz-run.ts'
import { exchangeRaw } from './raw-exchange.ts'
import { VIRTUAL_CONFIG, VIRTUAL_SEEDS } from './virtual-corpus.ts'

/*
 * The HTTP fronts of the runner and of the virtual server under requests that were made from real ones by breaking them. The seed is printed; with
 * FUZZ_SEED=n all of it comes again, with FUZZ_ONLY=n one case of it. FUZZ_REQUESTS says how many; `npm run soak` sends the full
 * figure of 100,000.
 */

const REQUESTS = given('FUZZ_REQUESTS') ?? (isCi() ? 20_000 : 2_000)
/** CI must be repeatable; everywhere else each run looks somewhere new. */
const SEED = given('FUZZ_SEED') ?? (isCi() ? 566532 : Date.now() % 1_000_000)
const ONLY = given('FUZZ_ONLY')
/** Of requests, after which the memory is looked at for the first time: pools, caches and compiled code are there by then. */
const WARM_UP_SHARE = 0.3
/** Memory that the allocator keeps varies by tens of megabytes; the heap is the stricter measure. */
const MAX_RSS_GROWTH_KB = 128 * 1024
/** Sessions and cancelled calls of the last minute are still there. */
const MAX_HEAP_GROWTH_KB = 32 * 1024
const SHOWN_ERRORS = 5
const TIMEOUT_MS = 120_000 + REQUESTS * 10

const BEFORE_HTTP = { name: 'fuzz-http', transport: 'streamable-http', remote_policy: { allow_loopback: true } }
/** Short enough that calls the server never answers end as 504 within the run, and sessions that were left behind expire. */
const QUICK = { session_ttl: '30s' }
const ENV = { TOOLHIVE_PROXY_REQUEST_TIMEOUT: '3s' }

describe('the HTTP front under broken requests', () => {
  it('before an HTTP server', { timeout: TIMEOUT_MS }, async () => {
    await using fixture = await spawnFixture({ era: 'dual', transport: 'http' })
    const config = { ...QUICK, ...BEFORE_HTTP, remote_url: fixture.url }
    await fuzz({ name: 'fuzz-http', start: (options) => startRunner(config, options) }, { from: 0, to: REQUESTS / 2 })
  })

  it('before a stdio server', { timeout: TIMEOUT_MS }, async () => {
    const { command, args } = fixtureCommand({ era: 'dual', transport: 'stdio' })
    const image = `exec://${realpathSync(command)}`
    const config = { ...QUICK, name: 'fuzz-stdio', transport: 'stdio', image, cmd_args: args, stdio_isolation: 'shared' }
    const isStdio = true
    await fuzz({ name: 'fuzz-stdio', isStdio, start: (options) => startRunner(config, options) }, { from: REQUESTS / 2, to: REQUESTS })
  })

  it('before a virtual server of both eras', { timeout: TIMEOUT_MS }, async () => {
    await using modern = await spawnFixture({ era: 'dual', transport: 'http' })
    await using legacy = await spawnFixture({ era: 'legacy', transport: 'http' })
    const backends = vmcpConfig({ modern: modern.url, legacy: legacy.url })
    const config = { ...backends, ...VIRTUAL_CONFIG, operational: { timeouts: { default: '3s' } } }
    const seeds = [...SEEDS, ...VIRTUAL_SEEDS]
    await fuzz({ name: 'fuzz-vmcp', seeds, start: (options) => startVmcp(config, options) }, { from: REQUESTS, to: 2 * REQUESTS })
  })

  it('that wait for 100 Continue in a row: each answer stays in one piece', { timeout: TIMEOUT_MS }, async () => {
    await using fixture = await spawnFixture({ era: 'dual', transport: 'http' })
    await using runner = await startRunner({ ...BEFORE_HTTP, remote_url: fixture.url })
    const port = Number(new URL(runner.url).port)
    // The first takes longest, so that the answers to the others are whole before they may be sent.
    const calls = [300, 10, 10].map((ms) => slowCall(port, ms))
    const transmission = { pieces: [Buffer.concat(calls)], expected: calls.length, isHead: false, manner: 'stay' } as const
    const { answers, garbage } = await exchangeRaw(port, transmission, { patienceMs: 0, hangMs: 60_000 })
    expect(garbage).toBeUndefined()
    expect(answers.map(({ body }) => body.toString('latin1', 0, 24))).toEqual(answers.map(() => '{"jsonrpc":"2.0","id":1,'))
    // One whose turn has not come gets no 100, and the connection ends after its answer: it says so.
    expect(answers.length).toBeGreaterThanOrEqual(2)
    if (answers.length < calls.length) expect(answers.at(-1)?.headers.get('connection')).toBe('close')
  })
})

/** A run of NaN requests would pass. */
function given(name: string): number | undefined {
  const text = process.env[name]
  if (text !== undefined && !/^\d+$/.test(text)) throw new Error(`${name} must be a whole number, not ${JSON.stringify(text)}`)
  return text === undefined ? undefined : Number(text)
}

function slowCall(port: number, ms: number): Buffer {
  const seed = SEEDS.find(({ name }) => name === 'modern tools/call')
  const call = seed?.build({ host: `127.0.0.1:${port}`, sessionId: '', id: 1 })
  if (call?.body === undefined) throw new Error('the corpus has no modern call')
  setHeader(call, 'Mcp-Name', 'slow')
  setHeader(call, 'Expect', '100-continue')
  return bytesOf({
    ...call,
    body: Buffer.from(
      call.body
        .toString()
        .replace('"echo"', '"slow"')
        .replace(/"arguments":{.*?}/, `"arguments":{"ms":${ms}}`),
    ),
  })
}

interface Fuzzed {
  readonly name: string
  readonly isStdio?: boolean
  /** Those of every server unless given. */
  readonly seeds?: readonly Seed[]
  start(options: RunnerOptions): Promise<Subject>
}

async function fuzz(
  { name, isStdio = false, seeds: all = SEEDS, start }: Fuzzed,
  { from, to }: { from: number; to: number },
): Promise<void> {
  const errors: string[] = []
  const onLine: RunnerOptions['onLine'] = (line) => void (/"level":"error"/.test(line) && errors.push(line))
  await using runner = await start({ env: ENV, onLine })
  const port = Number(new URL(runner.url).port)
  const problems = new Map<string, Problem[]>()
  const seeds = all.filter(({ httpOnly }) => httpOnly !== true || !isStdio)
  const part = { port, seed: SEED, seeds, onProblem: (problem: Problem) => remember(problems, problem) }
  if (ONLY !== undefined) {
    await runFuzz({ ...part, from: ONLY, to: ONLY + 1 })
  } else {
    console.log(`FUZZ_SEED=${SEED}: ${to - from} requests to ${name}`)
    const stalled = stalls(port)
    const warm = from + Math.floor((to - from) * WARM_UP_SHARE)
    await runFuzz({ ...part, from, to: warm })
    const before = await runner.process.usage({ gc: true })
    const counts = await runFuzz({ ...part, from: warm, to })
    expect(await stalled).toEqual(['answered', 'answered', 'answered'])
    const after = await runner.process.usage({ gc: true })
    console.log(`FUZZ_SEED=${SEED}: ${to - warm} of them after the warm-up; ${summary(counts)}; ${memory(before, after)}`)
    expect([...counts.outcomes.values()].reduce((sum, count) => sum + count, 0)).toBe(to - warm)
    expect(after.rssKb - before.rssKb).toBeLessThan(MAX_RSS_GROWTH_KB)
    expect(after.heapKb - before.heapKb).toBeLessThan(MAX_HEAP_GROWTH_KB)
  }
  expect([...problems.values()].map(oneOf).join('\n')).toBe('')
  expect(errors.slice(0, SHOWN_ERRORS)).toEqual([])
  await expectGoodCalls(port, all)
  await expectGoodEnd(runner)
}

/** Clients that begin a request and then say nothing more; a limit of time must end each. */
function stalls(port: number): Promise<string[]> {
  const host = `127.0.0.1:${port}`
  const starts = [
    'POST /mc',
    `POST /mcp HTTP/1.1\r\nHost: ${host}\r\nX: y\r\n`,
    `POST /mcp HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 50\r\n\r\n{"js`,
  ]
  const limits = { patienceMs: 0, hangMs: 90_000 }
  const send = (start: string) => exchangeRaw(port, { pieces: [Buffer.from(start)], expected: 1, isHead: false, manner: 'stay' }, limits)
  return Promise.all(starts.map(async (start) => (await send(start)).outcome))
}

/** After all that, the seeds as they are get what they should. */
async function expectGoodCalls(port: number, seeds: readonly Seed[]): Promise<void> {
  const host = `127.0.0.1:${port}`
  const initialize = SEEDS.find(({ name }) => name === 'legacy initialize')?.build({ host, sessionId: '', id: 1 })
  const opened = initialize && (await sendGood(port, initialize)).answers[0]
  const sessionId = opened?.headers.get('mcp-session-id') ?? ''
  for (const [index, { name, status, build }] of seeds.entries()) {
    if (status === undefined) continue
    // A session must not use an id twice, and a server may insist on it.
    const { answers } = await sendGood(port, build({ host, sessionId, id: 100 + index }))
    expect(status, `${name}: ${answers[0]?.body.toString()}`).toContain(answers[0]?.status)
  }
}

/** The same process, and it still ends in good order. */
async function expectGoodEnd(runner: Subject): Promise<void> {
  expect(await runner.process.terminate(), runner.process.output.join('\n')).toBe(0)
}

function remember(problems: Map<string, Problem[]>, problem: Problem): void {
  problems.set(problem.kind, [...(problems.get(problem.kind) ?? []), problem])
}

/** The shortest says most. */
function oneOf(alike: readonly Problem[]): string {
  const [shortest] = alike.toSorted((a, b) => a.text.length - b.text.length)
  return `${alike.length} ×: ${shortest?.text}`
}

function summary({ statuses, outcomes }: FuzzCounts): string {
  const text = (counts: ReadonlyMap<unknown, number>) =>
    [...counts]
      .map(([key, count]) => `${key}: ${count}`)
      .sort()
      .join(', ')
  return `${text(outcomes)}; ${text(statuses)}`
}

function memory(before: { rssKb: number; heapKb: number }, after: { rssKb: number; heapKb: number }): string {
  const mb = (kb: number) => (kb / 1024).toFixed(0)
  return `RSS ${mb(before.rssKb)} → ${mb(after.rssKb)} MB, heap ${mb(before.heapKb)} → ${mb(after.heapKb)} MB`
}
