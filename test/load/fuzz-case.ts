import { BODY_MUTATIONS, type Mutation } from './body-mutations.ts'
import type { Seed, SeedContext } from './fuzz-corpus.ts'
import { bytesOf, type FuzzRequest } from './fuzz-request.ts'
import { HEAD_MUTATIONS } from './head-mutations.ts'
import { createPrng, type Prng } from './prng.ts'
import type { Transmission } from './raw-exchange.ts'

/** One connection's worth of bad manners. The same seed and number give the same one, but for the session id. */
export interface FuzzCase {
  readonly seed: Seed
  /** Names of what was done to the seed. Empty: nothing, and its answer must be the right one. */
  readonly changes: readonly string[]
  readonly transmission: Transmission
  /** Of the request as it was sent, if it can still be read as one. */
  readonly requestId: unknown
}

export interface CaseContext extends Omit<SeedContext, 'id'> {
  /** Of a session that only requests in order use. */
  readonly goodSessionId: string
}

const UNCHANGED = 0.12
const MUTATIONS: readonly Mutation[] = [...BODY_MUTATIONS, ...HEAD_MUTATIONS]

/** Which run, which of its cases, and from which requests they are made. */
export interface CaseNumber {
  readonly run: number
  readonly number: number
  readonly seeds: readonly Seed[]
}

export function fuzzCase({ run, number, seeds }: CaseNumber, context: CaseContext): FuzzCase {
  const random = createPrng(Math.imul(run, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b))
  const seed = weighted(seeds, random)
  const isUnchanged = random.chance(UNCHANGED)
  const sessionId = isUnchanged ? context.goodSessionId : context.sessionId
  const request = seed.build({ host: context.host, sessionId, id: number })
  const changes = isUnchanged ? [] : mutate(request, random)
  const wire = bytesOf(request)
  const requestId = idOf(request)
  const isHead = request.method === 'HEAD'
  if (isUnchanged) return { seed, changes, requestId, transmission: { pieces: [wire], expected: 1, isHead, manner: 'stay' } }
  const { bytes, expected, change } = inBytes(wire, random)
  const manner = random.pick(['wait', 'wait', 'wait', 'wait', 'wait', 'wait', 'half', 'cut'] as const)
  return {
    seed,
    changes: [...changes, change, manner].filter((name) => name !== ''),
    requestId,
    transmission: { pieces: inPieces(bytes, random), expected, isHead, manner },
  }
}

function mutate(request: FuzzRequest, random: Prng): string[] {
  const count = random.pick([0, 1, 1, 1, 2, 2, 3])
  const mutations = Array.from({ length: count }, () => weighted(MUTATIONS, random))
  for (const mutation of mutations) mutation.apply(request, random)
  return mutations.map(({ name }) => name)
}

/** Changes of raw bytes: the limits between requests, line ends, the beginning of another protocol. */
function inBytes(wire: Buffer, random: Prng): { bytes: Buffer; expected: number; change: string } {
  const small = wire.length < 100_000
  const roll = random.next()
  if (roll < 0.06 && small) {
    const count = random.pick([2, 3, 5, 20])
    return { bytes: Buffer.concat(Array.from({ length: count }, () => wire)), expected: count, change: `pipelined ${count}` }
  }
  if (roll < 0.1) return { bytes: wire.subarray(0, random.below(wire.length)), expected: 1, change: 'cut off' }
  if (roll < 0.14) return { bytes: flipped(wire, random), expected: 1, change: 'flipped bits anywhere' }
  if (roll < 0.16)
    return { bytes: Buffer.from(wire.toString('latin1').replaceAll('\r\n', '\n'), 'latin1'), expected: 1, change: 'bare line feeds' }
  if (roll < 0.17) return { bytes: Buffer.concat([Buffer.from('\r\n\r\n'), wire]), expected: 1, change: 'empty lines first' }
  if (roll < 0.18) {
    const start = random.pick([
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      '\u0016\u0003\u0001\u0002\u0000',
      'SSH-2.0-x\r\n',
      '\u0000\u0000',
      'GET /mcp\r\n\r\n',
    ])
    return { bytes: Buffer.concat([Buffer.from(start, 'latin1'), wire]), expected: 1, change: 'another protocol' }
  }
  return { bytes: wire, expected: 1, change: '' }
}

function flipped(wire: Buffer, random: Prng): Buffer {
  const bytes = Buffer.from(wire)
  for (let flips = 1 + random.below(5); flips > 0; flips--) {
    const at = random.below(bytes.length)
    bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8))
  }
  return bytes
}

function inPieces(bytes: Buffer, random: Prng): Buffer[] {
  if (random.chance(0.8) || bytes.length < 2) return [bytes]
  const cuts = Array.from({ length: random.pick([1, 2, 5]) }, () => 1 + random.below(bytes.length - 1)).sort((a, b) => a - b)
  return [0, ...cuts].map((from, index) => bytes.subarray(from, cuts[index] ?? bytes.length))
}

/** Undefined where there is none that an answer could repeat. */
function idOf({ body }: FuzzRequest): unknown {
  try {
    return (JSON.parse(body?.toString('utf8') ?? 'null') as { id?: unknown } | null)?.id
  } catch {
    return undefined
  }
}

function weighted<T extends { readonly weight: number }>(from: readonly T[], random: Prng): T {
  let roll = random.next() * from.reduce((sum, { weight }) => sum + weight, 0)
  for (const each of from) {
    roll -= each.weight
    if (roll < 0) return each
  }
  return random.pick(from)
}
