import { type FuzzCase, fuzzCase } from './fuzz-case.ts'
import { endSession, initialize, type Seed } from './fuzz-corpus.ts'
import { bytesOf, type FuzzRequest } from './fuzz-request.ts'
import { verdictOf } from './fuzz-verdict.ts'
import type { HttpAnswer } from './http-answers.ts'
import { type Exchange, exchangeRaw, type RawLimits } from './raw-exchange.ts'

export interface FuzzRunOptions {
  readonly port: number
  readonly seed: number
  readonly seeds: readonly Seed[]
  /** Numbers of the cases, from inclusive to exclusive. */
  readonly from: number
  readonly to: number
  /** Told of each case that went wrong; the run goes on. */
  readonly onProblem: (problem: Problem) => void
}

export interface Problem {
  readonly kind: string
  /** With all that is needed to see it again. */
  readonly text: string
}

export interface FuzzCounts {
  readonly statuses: Map<number, number>
  readonly outcomes: Map<string, number>
}

const LANES = 24
const LIMITS: RawLimits = { patienceMs: 400, hangMs: 60_000 }
const KEPT_SESSIONS = 30

/** Sends the cases, many at a time, each over its own connection, and judges every answer. */
export async function runFuzz({ port, seed, seeds, from, to, onProblem }: FuzzRunOptions): Promise<FuzzCounts> {
  const host = `127.0.0.1:${port}`
  const counts: FuzzCounts = { statuses: new Map(), outcomes: new Map() }
  const sessions: string[] = [await openSession(port), await openSession(port)]
  const goodSessionId = await openSession(port)
  let next = from

  async function lane(): Promise<void> {
    for (let number = next++; number < to; number = next++) {
      const sessionId = sessions[number % sessions.length] ?? ''
      const fuzz = fuzzCase({ run: seed, number, seeds }, { host, sessionId, goodSessionId })
      const exchange = await exchangeRaw(port, fuzz.transmission, LIMITS)
      count(counts.outcomes, exchange.outcome)
      for (const { status } of exchange.answers) count(counts.statuses, status)
      const problem = verdictOf(fuzz, exchange)
      if (problem !== undefined) onProblem({ kind: problem, text: describe(problem, { seed, number, fuzz, exchange }) })
      await keepSessions(exchange.answers)
    }
  }

  /** Sessions that were opened on the way are used by what comes later, and not left behind. */
  async function keepSessions(answers: readonly HttpAnswer[]): Promise<void> {
    for (const { status, headers } of answers) {
      const opened = status === 200 ? headers.get('mcp-session-id') : undefined
      if (opened !== undefined) sessions.push(opened)
    }
    while (sessions.length > KEPT_SESSIONS) await sendGood(port, endSession({ host, sessionId: sessions.shift() ?? '', id: 0 }))
  }

  await Promise.all(Array.from({ length: LANES }, lane))
  return counts
}

async function openSession(port: number): Promise<string> {
  const { answers } = await sendGood(port, initialize({ host: `127.0.0.1:${port}`, sessionId: '', id: 0 }))
  const id = answers[0]?.headers.get('mcp-session-id')
  if (id === undefined) throw new Error(`no session was opened: ${answers[0]?.status} ${answers[0]?.body.toString()}`)
  return id
}

/** One request in order. */
export function sendGood(port: number, request: FuzzRequest): Promise<Exchange> {
  return exchangeRaw(port, { pieces: [bytesOf(request)], expected: 1, isHead: false, manner: 'stay' }, LIMITS)
}

interface Failed {
  readonly seed: number
  readonly number: number
  readonly fuzz: FuzzCase
  readonly exchange: Exchange
}

/** All that is needed to see it again: FUZZ_SEED and FUZZ_ONLY with these numbers send the same bytes. */
function describe(problem: string, { seed, number, fuzz, exchange }: Failed): string {
  const sent = Buffer.concat(fuzz.transmission.pieces).toString('latin1')
  const answers = exchange.answers.slice(-2).map(({ status, body }) => `${status} ${body.toString('latin1', 0, 400)}`)
  return [
    `${problem} (FUZZ_SEED=${seed} FUZZ_ONLY=${number})`,
    `  ${fuzz.seed.name}, changed: ${fuzz.changes.join('; ') || 'nothing'}; ${exchange.outcome}`,
    `  sent ${sent.length} bytes: ${JSON.stringify(sent.slice(0, 900))}`,
    `  ${exchange.answers.length} answers, at last: ${JSON.stringify(answers)}`,
  ].join('\n')
}

function count<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
